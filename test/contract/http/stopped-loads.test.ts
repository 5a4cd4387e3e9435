import { expect, test } from 'vitest';
import type { Overview } from '../../../src/jobs/overview-api.ts';
import type { JobDetail } from '../../../src/load/api.ts';
import { form, openServer } from '../../support/servers/http.ts';
import { waitFor } from '../../support/wait-for.ts';

const { t, server } = await openServer({ settings: { CHUNK_BYTES: '64k' } });
t.startWorker();

let serial = 0;
const rows = (count: number, refused: number) =>
  `user_id,text\n${Array.from({ length: count }, (_, n) => `${n < refused ? '' : `u${n}`},${'x'.repeat(100)}\n`).join('')}`;

// proves: console-truth
test.each([
  ['of one chunk that max_errors stopped', '?max_errors=1', rows(31, 2), 'failed', false],
  ['of many chunks that max_errors stopped', '?max_errors=1', rows(3_000, 2), 'failed', false],
  ['that a guard holds after a check', '?guard=rows%3D5000..9000', rows(3_000, 2), 'held', false],
  ['of a dry run', '?dry_run=true&max_errors=5', rows(3_000, 2), 'completed', true],
  ['of a plan', '?plan=true', rows(3_000, 2), 'completed', true],
])(
  'a load %s leaves no record without an outcome, and has the right status',
  async (...[, query, file, status, isDryRun]) => {
    const { key } = await t.addEnvironment(`stopped${++serial}`);
    const { body } = await server.json<{ job_id: string }>(`/v1/imports${query}`, {
      method: 'POST',
      key,
      body: form(file),
    });
    const detail = await waitFor('the load to stop', async () => {
      const { body: job } = await server.json<JobDetail>(`/v1/background_jobs/${body.job_id}`, { key });
      return !['queued', 'processing'].includes(job.status) && job;
    });
    const { body: overview } = await server.json<Overview>('/v1/overview', { key });
    expect([detail.status, detail.dry_run, overview.unaccounted, overview.needs]).toEqual([
      status,
      isDryRun,
      0,
      expect.not.arrayContaining([expect.objectContaining({ kind: 'records_unaccounted' })]),
    ]);
  },
);
