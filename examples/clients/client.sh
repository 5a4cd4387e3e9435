#!/bin/sh
# sluice with curl. Set SLUICE_URL and SLUICE_API_KEY.
#   sh client.sh users.csv
set -eu
url=${SLUICE_URL:-http://127.0.0.1:8080}
file=$1

# Prints the body of an answer. A refusal ends the script with its error record.
call() {
  curl --silent --show-error --fail-with-body --header "Authorization: Token $SLUICE_API_KEY" "$@"
}

# Prints the value of a text field. It is enough for answers of sluice. With jq: jq -r ".$1".
field() {
  sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"
}

# Waits until the job at an address has ended, then prints it.
wait_for() {
  while :; do
    job=$(call "$1")
    case $(echo "$job" | field status) in
      completed) echo "$job"; return ;;
      failed | cancelled) echo "$job" >&2; return 1 ;;
    esac
    sleep 0.5
  done
}

call --json '{"user_id":"ada","metadata":{"name":"Ada Lovelace","plan":"pro"},"company":{"company_id":"acme"}}' \
  "$url/v1/identify"
call --json '{"user_id":"ada","event_name":"report_exported","event_id":"report-1","metadata":{"rows":1200}}' \
  "$url/v1/track"
echo "identified ada, tracked report_exported"

job_id=$(call --form "file=@$file" "$url/v1/imports" | field job_id)
wait_for "$url/v1/background_jobs/$job_id"
echo "refused records:"
call --header 'Accept: application/x-ndjson' "$url/v1/background_jobs/$job_id/rejects"

export_id=$(call --json '{"event_type":["users"],"compression":"none"}' "$url/api/v1/analytics/exports" | field job_id)
export=$(wait_for "$url/api/v1/analytics/exports/jobs/$export_id")
link=$(echo "$export" | tr ',{' '\n\n' | field url | head -n 1)
curl --silent --show-error --fail --output users.ndjson "$link"
echo "exported $(wc -l <users.ndjson | tr -d ' ') users to users.ndjson"
