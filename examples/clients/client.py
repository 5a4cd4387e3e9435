"""sluice with Python 3.9 or newer, standard library only. Set SLUICE_URL and SLUICE_API_KEY.

    python3 client.py users.csv
"""

import json
import os
import shutil
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

URL = os.environ.get("SLUICE_URL", "http://127.0.0.1:8080")
KEY = os.environ["SLUICE_API_KEY"]


def call(path, body=None, headers=None):
    """Returns the JSON of an answer, or None if it is empty. A refusal ends the program with its error.

    Sends a dict as JSON. Sends an open file unchanged, as a stream that is never held in memory.
    """
    headers = {"Authorization": f"Token {KEY}", **(headers or {})}
    if isinstance(body, dict):
        body = json.dumps(body).encode()
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(URL + path, data=body, headers=headers)
    try:
        with urllib.request.urlopen(request) as response:
            text = response.read()
    except urllib.error.HTTPError as error:
        sys.exit(f"{path}: {error.code} {error.read().decode()}")
    return json.loads(text) if text else None


def wait_for(path):
    """Waits until the job at a path has ended."""
    while True:
        job = call(path)
        if job["status"] == "completed":
            return job
        if job["status"] in ("failed", "cancelled"):
            sys.exit(f"{path}: {job['failure']}")
        time.sleep(0.5)


def import_file(path):
    """Returns the id of the job that loads a file. The body is the file itself, without a form."""
    name = urllib.parse.quote(os.path.basename(path))
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Length": str(os.path.getsize(path)),
        "Content-Disposition": f'attachment; filename="{name}"',
    }
    with open(path, "rb") as file:
        return call("/v1/imports", file, headers)["job_id"]


def main(path):
    call(
        "/v1/identify",
        {
            "user_id": "ada",
            "metadata": {"name": "Ada Lovelace", "plan": "pro"},
            "company": {"company_id": "acme"},
        },
    )
    # An event with an id that is sent again is stored once.
    call(
        "/v1/track",
        {
            "user_id": "ada",
            "event_name": "report_exported",
            "event_id": "report-1",
            "metadata": {"rows": 1200},
        },
    )
    print("identified ada, tracked report_exported")

    job_id = import_file(path)
    load = wait_for(f"/v1/background_jobs/{job_id}")
    print(f"imported {os.path.basename(path)}: {json.dumps(load['counts'])}")
    for reject in call(f"/v1/background_jobs/{job_id}/rejects")["data"]:
        print(f"refused, line {reject['line']}: {reject['error_code']}, {reject['message']}")

    export = call("/api/v1/analytics/exports", {"event_type": ["users"], "compression": "none"})
    done = wait_for(f"/api/v1/analytics/exports/jobs/{export['job_id']}")
    for file in done["presigned_urls"]:
        # The link is signed, so it needs no key.
        with urllib.request.urlopen(file["url"]) as response, open(file["filename"], "wb") as out:
            shutil.copyfileobj(response, out)
        print(f"exported {file['rows']} rows to {file['filename']}")


if __name__ == "__main__":
    main(sys.argv[1])
