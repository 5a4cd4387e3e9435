import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { api, mayUse, withQuery } from '../../lib/api.ts';
import { formatCount, plural } from '../../lib/format.ts';
import { apiHref } from '../../lib/place.ts';
import { useAction } from '../../lib/use-data.ts';
import { Problems } from '../../ui/problems.tsx';
import { isEnded, type LoadDetail, useLoad } from '../load/load-record.ts';

interface Props {
  readonly job: LoadDetail;
  readonly onChange: () => void;
}

/** All refused records as a file, and the way back in for that file once it is mended. */
export function MendedFile({ job, onChange }: Props): VNode {
  const [sent, setSent] = useState('');
  const isJson = !['csv', 'xlsx'].includes(job.read_as?.format ?? 'csv');
  const format = isJson ? 'ndjson' : 'csv';
  const path = `/v1/background_jobs/${job.job_id}`;
  const [file, setFile] = useState<File | null>(null);
  const send = useAction(async () => {
    if (file === null) return;
    const headers = { 'content-type': isJson ? 'application/x-ndjson' : 'text/csv' };
    const url = withQuery(`${path}/amend`, { filename: file.name });
    const { job_id } = await api<{ readonly job_id: string }>(url, { method: 'POST', body: file, headers });
    setSent(job_id);
  });
  useEffect(() => {
    if (file !== null) void send.run().finally(() => setFile(null));
  }, [file]);
  return (
    <div class="mended-file">
      <a class="button button-quiet" href={apiHref(withQuery(`${path}/rejects`, { format }))} download>
        Download all as {format.toUpperCase()}
      </a>
      <label class="button button-quiet">
        <input
          type="file"
          class="visually-hidden"
          disabled={send.isRunning || !mayUse('import')}
          onChange={(event) => {
            setFile(event.currentTarget.files?.[0] ?? null);
            event.currentTarget.value = '';
          }}
        />
        Send the mended file
      </label>
      <Problems error={send.error} />
      {sent === '' ? null : <Outcome key={sent} jobId={sent} onEnd={onChange} />}
    </div>
  );
}

/** What became of the file. */
function Outcome({ jobId, onEnd }: { readonly jobId: string; readonly onEnd: () => void }): VNode {
  const job = useLoad(jobId);
  const isOver = job.data !== undefined && isEnded(job.data);
  useEffect(() => {
    if (isOver) onEnd();
  }, [isOver]);
  return (
    <p class="hint" role="status">
      {outcomeOf(job.data)}
    </p>
  );
}

function outcomeOf(job: LoadDetail | undefined): string {
  if (job === undefined || !isEnded(job)) return 'The file is being loaded';
  const { read, rejected } = job.counts;
  if (job.status === 'cancelled' || (job.failure !== null && rejected < read))
    return `Nothing of the file was loaded: ${job.failure?.message ?? job.status}`;
  const again = rejected === 0 ? '' : `, ${formatCount(rejected)} refused again`;
  return `${plural(read - rejected, 'record')} of the file mended${again}`;
}
