{{- define "soloist.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "soloist.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "soloist.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "soloist.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "soloist.selectorLabels" -}}
app.kubernetes.io/name: {{ include "soloist.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "soloist.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "soloist.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "soloist.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "soloist.configMap" -}}
{{ .Values.existingConfigMap | default (include "soloist.fullname" .) }}
{{- end }}

{{- define "soloist.storeSecret" -}}
{{ .Values.store.existingSecret | default (printf "%s-store" (include "soloist.fullname" .)) }}
{{- end }}

{{- /* There even where it has no tokens: they may be added, and none is a reason to restart. */}}
{{- define "soloist.tokensSecret" -}}
{{ .Values.api.existingSecret | default (printf "%s-tokens" (include "soloist.fullname" .)) }}
{{- end }}

{{- /* The first token of api.tokens that may read, for Prometheus. Of a digest it can't be known. */}}
{{- define "soloist.scrapeToken" -}}
{{- $found := "" -}}
{{- range regexFindAll "(?m)^[ \\t]*read[ \\t]+[^ \\t\\r\\n]+[ \\t]+[^ \\t\\r\\n]+" .Values.api.tokens -1 -}}
{{- $token := regexFind "[^ \\t]+$" . -}}
{{- if and (not $found) (not (hasPrefix "sha256:" $token)) -}}
{{- $found = $token -}}
{{- end -}}
{{- end -}}
{{ $found }}
{{- end }}

{{- /* The Secret that Prometheus takes its token from, and the key: a map in JSON. */}}
{{- define "soloist.scrapeSecret" -}}
{{- $named := .Values.metrics.serviceMonitor.tokenSecret -}}
{{- if $named.name -}}
{{- if not (or .Values.api.tokens .Values.api.existingSecret) -}}
{{- fail "metrics.serviceMonitor.tokenSecret: the replicas know no tokens, and would refuse this one: they get theirs by api.tokens or api.existingSecret" -}}
{{- end -}}
{{ $named | toJson }}
{{- else if and (not .Values.api.existingSecret) (include "soloist.scrapeToken" .) -}}
{{ dict "name" (printf "%s-scrape" (include "soloist.fullname" .)) "key" "token" | toJson }}
{{- else -}}
{{- fail "metrics.serviceMonitor: replicas show their metrics to who has a token. Put a line `read prometheus TOKEN` into api.tokens (`openssl rand -hex 32` draws one), and the chart hands it to Prometheus; with api.existingSecret, or where it has digests alone, name a Secret with the token in metrics.serviceMonitor.tokenSecret" -}}
{{- end -}}
{{- end }}

{{- define "soloist.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "soloist.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}

{{- define "soloist.listen" -}}
{{- $address := .Values.listen.address -}}
{{ contains ":" $address | ternary (printf "[%s]" $address) $address }}:{{ .Values.listen.port }}
{{- end }}

{{- /* A duration of jobs.toml, "1m30s", in milliseconds. */}}
{{- define "soloist.milliseconds" -}}
{{- $units := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 "d" 86400000 -}}
{{- $sum := 0 -}}
{{- range regexFindAll "[0-9]+(ms|s|m|h|d)" (toString .) -1 -}}
{{- $number := regexFind "^[0-9]+" . -}}
{{- $sum = add $sum (mul (int64 $number) (get $units (trimPrefix $number .))) -}}
{{- end -}}
{{ $sum }}
{{- end }}

{{- /* What a pod has to stop: running attempts get shutdown_grace, those that are still there the
       kill_grace of their job, and then they are handed over. */}}
{{- define "soloist.terminationSeconds" -}}
{{- $grace := .Values.scheduler.shutdown_grace | default "30s" -}}
{{- $kill := .Values.defaults.kill_grace | default "5s" | include "soloist.milliseconds" | int64 -}}
{{- range .Values.jobs -}}
{{- with . -}}
{{- with .kill_grace -}}
{{- $kill = max $kill (include "soloist.milliseconds" . | int64) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range regexFindAll "\\bkill_grace[\"']?\\s*=\\s*[\"'][0-9a-z]+" .Values.jobsToml -1 -}}
{{- $kill = max $kill (include "soloist.milliseconds" (regexFind "[0-9a-z]+$" .) | int64) -}}
{{- end -}}
{{- $total := add (include "soloist.milliseconds" $grace | int64) $kill -}}
{{ add (div (add $total 999) 1000) (int64 .Values.stopMarginSeconds) }}
{{- end }}

{{- /* A value of YAML as one of TOML. A JSON string is a TOML string. Numbers come as floats. */}}
{{- define "soloist.toml.value" -}}
{{- if kindIs "string" . -}}
{{ toRawJson . }}
{{- else if kindIs "slice" . -}}
[
{{- range $at, $value := . -}}
{{ if $at }}, {{ end }}{{ include "soloist.toml.value" $value }}
{{- end -}}
]
{{- else if kindIs "map" . -}}
{
{{- $comma := "" -}}
{{- range $key, $value := . -}}
{{- if not (kindIs "invalid" $value) -}}
{{ $comma }} {{ include "soloist.toml.key" $key }} = {{ include "soloist.toml.value" $value }}
{{- $comma = "," -}}
{{- end -}}
{{- end }} }
{{- else if kindIs "float64" . -}}
{{ eq . (float64 (int64 .)) | ternary (int64 .) . }}
{{- else -}}
{{ . }}
{{- end -}}
{{- end }}

{{- define "soloist.toml.key" -}}
{{ regexMatch "^[A-Za-z0-9_-]+$" . | ternary . (toRawJson .) }}
{{- end }}

{{- /* The keys of a table, a line for each. What is null is left out. */}}
{{- define "soloist.toml.keys" -}}
{{- range $key, $value := . }}
{{- if not (kindIs "invalid" $value) }}
{{ include "soloist.toml.key" $key }} = {{ include "soloist.toml.value" $value }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A key as it may stand in the header of a table, as a regular expression. */}}
{{- define "soloist.toml.header" -}}
{{- $key := regexQuoteMeta . -}}
[ \t]*({{ $key }}|"{{ $key }}"|'{{ $key }}')[ \t]*
{{- end }}

{{- /* TOML has a table once: what values give is not to be in jobsToml. Nor may that begin with a
       key, which would be taken for one of the table above it. */}}
{{- define "soloist.refuseTwice" -}}
{{- $text := .Values.jobsToml -}}
{{- if not (regexMatch "^([ \\t\\r\\n]|#[^\\n]*(\\n|$))*(\\[|$)" $text) -}}
{{- fail "jobsToml: it begins with a key that is in no table: begin with [defaults], [jobs.NAME] or another one" -}}
{{- end -}}
{{- if regexMatch (printf "(?m)^[ \\t]*\\[%s[].]" (include "soloist.toml.header" "scheduler")) $text -}}
{{- fail "jobsToml: [scheduler] belongs in the value `scheduler`, which the chart reads, too" -}}
{{- end -}}
{{- if and .Values.defaults (regexMatch (printf "(?m)^[ \\t]*\\[%s[].]" (include "soloist.toml.header" "defaults")) $text) -}}
{{- fail "jobsToml: [defaults] is given by the value `defaults`, too: put all of it into one of the two" -}}
{{- end -}}
{{- range $kind := list "calendars" "notify" "jobs" -}}
{{- range $name, $table := index $.Values $kind -}}
{{- $header := printf "(?m)^[ \\t]*\\[%s\\.%s[].]" (include "soloist.toml.header" $kind) (include "soloist.toml.header" $name) -}}
{{- if and $table (regexMatch $header $text) -}}
{{- fail (printf "jobsToml: [%s.%s] is given by the value `%s`, too: leave it out of one of the two" $kind $name $kind) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "soloist.table" -}}
[scheduler]
{{- include "soloist.toml.keys" .Values.scheduler }}
{{- if .Values.revisionFromRelease }}
{{- if hasKey .Values.scheduler "revision" }}
{{- fail "revisionFromRelease: scheduler.revision is set, too: leave one of the two out" }}
{{- end }}
revision = {{ .Release.Revision }}
{{- end }}
{{- with .Values.defaults }}

[defaults]
{{- include "soloist.toml.keys" . }}
{{- end }}
{{- range $name, $calendar := .Values.calendars }}
{{- if $calendar }}

[calendars.{{ include "soloist.toml.key" $name }}]
{{- include "soloist.toml.keys" $calendar }}
{{- end }}
{{- end }}
{{- range $name, $target := .Values.notify }}
{{- if $target }}

[notify.{{ include "soloist.toml.key" $name }}]
{{- include "soloist.toml.keys" $target }}
{{- end }}
{{- end }}
{{- $jobs := 0 }}
{{- range $name, $job := .Values.jobs }}
{{- if $job }}
{{- $jobs = add1 $jobs }}

[jobs.{{ include "soloist.toml.key" $name }}]
{{- include "soloist.toml.keys" $job }}
{{- end }}
{{- end }}
{{- if and (not $jobs) (not .Values.jobsToml) }}

# There are no jobs yet, and soloist takes no table without one.
[jobs.example]
enabled = false
schedule = "@daily"
command = ["soloist", "--version"]
{{- end }}
{{- include "soloist.refuseTwice" . }}
{{- with .Values.jobsToml }}

{{ . | trim }}
{{- end }}
{{- end }}

{{- /* What no reload changes, and whether there is one. */}}
{{- define "soloist.start" -}}
{{- pick .Values.scheduler "namespace" "watch" "min_replicas_ack" "tls_ca" "tls_cert" "tls_key" "tls_server_name" | toJson }}
{{- ternary "" .Values.store.url (not (empty .Values.store.existingSecret)) }}
{{- end }}

{{- define "soloist.env" -}}
- name: SOLOIST_CONFIG
  value: /etc/soloist/config/jobs.toml
- name: SOLOIST_STORE
  valueFrom:
    secretKeyRef:
      name: {{ include "soloist.storeSecret" . }}
      key: {{ .Values.store.key }}
- name: SOLOIST_LOG_FORMAT
  value: {{ .Values.logFormat }}
- name: SOLOIST_LOG_LEVEL
  value: {{ .Values.logLevel | quote }}
{{- end }}
