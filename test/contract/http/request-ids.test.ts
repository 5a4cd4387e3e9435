import { expect, test } from 'vitest';
import { collectLog } from '../../support/servers/collected-log.ts';
import { openServer } from '../../support/servers/http.ts';
import { waitFor } from '../../support/wait-for.ts';

const collected = collectLog();
const { server } = await openServer({ log: collected.log, worker: true });

/**
 * Waits until the message `last` is logged for a request. Returns all messages and jobs logged for
 * the request.
 */
async function linesOf(requestId: string, last: string): Promise<{ messages: unknown[]; jobs: unknown[] }> {
  return waitFor(`"${last}" of ${requestId}`, () => {
    const lines = collected.lines.filter((line) => line['request_id'] === requestId);
    const messages = lines.map(({ msg }) => msg);
    const jobs = [...new Set(lines.map((line) => line['job_id']))];
    return messages.includes(last) ? { messages, jobs } : null;
  });
}

interface JobAnswer {
  readonly id: string;
  readonly job_id: string;
}

async function ask(path: string, method: string, body: object, requestId?: string): Promise<JobAnswer> {
  const headers = {
    'content-type': 'application/json',
    ...(requestId !== undefined && { 'x-request-id': requestId }),
  };
  const answer = await server.json<Record<string, string>>(path, {
    method,
    headers,
    body: JSON.stringify(body),
  });
  expect(answer.status).toBeGreaterThanOrEqual(200);
  expect(answer.status).toBeLessThan(300);
  const id = answer.headers.get('x-request-id') ?? '';
  return { id, job_id: answer.body['job_id'] ?? answer.body['id'] ?? '' };
}

// proves: request-id
test('a request id leads from an upload to the log of its load in the workers', async () => {
  const { id, job_id } = await ask(
    '/v1/users/bulk_identify',
    'POST',
    { users: [{ user_id: 'a' }] },
    'upload-1',
  );
  expect(id).toBe('upload-1');
  expect(await linesOf(id, 'load completed')).toEqual({
    messages: ['load accepted', 'load starts', 'load completed'],
    jobs: [job_id],
  });
});

test('a request id leads from a request for an export or a deletion to its end', async () => {
  const dates = { from: '2026-01-01', to: '2026-01-02' };
  const exporting = await ask('/api/v1/analytics/exports', 'POST', dates, 'export-1');
  expect(await linesOf('export-1', 'export completed')).toEqual({
    messages: ['export accepted', 'export completed'],
    jobs: [exporting.job_id],
  });
  const deleting = await ask('/v1/users', 'DELETE', { users: ['a'] }, 'deletion-1');
  expect(await linesOf('deletion-1', 'deletion completed')).toEqual({
    messages: ['deletion accepted', 'deletion starts', 'deletion completed'],
    jobs: [deleting.job_id],
  });
});
