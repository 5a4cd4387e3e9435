import { expect, test } from 'vitest';
import type { JobRecord as Job } from '../../../src/http/job.ts';
import { type ErrorBody, openServer } from '../../support/servers/http.ts';

const { t, server } = await openServer();

let serial = 0;

async function submit(idempotencyKey?: string): Promise<string> {
  const { body } = await server.json<Job>('/v1/imports', {
    method: 'POST',
    body: `user_id\nu${++serial}\n`,
    headers: {
      'content-type': 'text/csv',
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    },
  });
  return body.job_id;
}

const act = (action: 'cancel' | 'retry', jobId: string, idempotencyKey?: string, key?: string) =>
  server.json<Job & ErrorBody>(`/v1/background_jobs/${jobId}/${action}`, {
    method: 'POST',
    ...(key !== undefined && { key }),
    headers: idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
  });

const refusal = (answer: { status: number; body: ErrorBody }) => [
  answer.status,
  answer.body.errors[0]?.error_code,
];

const attempts = async (jobId: string) =>
  (await server.json<{ attempts: number }>(`/v1/background_jobs/${jobId}`)).body.attempts;

test('a cancel repeated with its key gives the first answer, even after the job changed', async () => {
  const jobId = await submit();
  const first = await act('cancel', jobId, 'cancel-1');
  expect([first.status, first.body.status]).toEqual([202, 'cancelled']);
  expect(await act('cancel', jobId, 'cancel-1')).toMatchObject({ status: 202, body: first.body });
  expect(refusal(await act('cancel', jobId))).toEqual([409, 'job_not_cancellable']);
  expect(refusal(await act('cancel', jobId, 'cancel-1-other'))).toEqual([409, 'job_not_cancellable']);
  expect((await act('retry', jobId)).status).toBe(202);
  const again = await act('cancel', jobId, 'cancel-1');
  expect([again.status, again.body]).toEqual([202, first.body]);
  expect((await server.json<Job>(`/v1/background_jobs/${jobId}`)).body.status).toMatch(/queued|processing/);
});

test('a retry repeated with its key gives the first answer, and makes one attempt', async () => {
  const jobId = await submit();
  await act('cancel', jobId);
  const answers = [await act('retry', jobId, 'retry-1'), await act('retry', jobId, 'retry-1')];
  for (const { status, body } of answers) {
    expect([status, body.status, body.end_time]).toEqual([202, 'queued', null]);
  }
  expect(answers[1]?.body).toEqual(answers[0]?.body);
  await act('cancel', jobId);
  expect((await act('retry', jobId, 'retry-1')).body).toEqual(answers[0]?.body);
  expect(await attempts(jobId)).toBe(2);
  expect((await server.json<Job>(`/v1/background_jobs/${jobId}`)).body.status).toBe('cancelled');
});

test('two cancels at once with one key get one answer', async () => {
  const jobId = await submit();
  const both = await Promise.all([act('cancel', jobId, 'at-once'), act('cancel', jobId, 'at-once')]);
  expect(both.map(({ status }) => status)).toEqual([202, 202]);
  expect(both[0]?.body).toEqual(both[1]?.body);
});

test('an Idempotency-Key of another job, action or upload is a conflict, and nothing is done', async () => {
  const one = await submit();
  const other = await submit('an-upload');
  await act('cancel', one, 'conflict-1');
  expect(refusal(await act('cancel', other, 'conflict-1'))).toEqual([409, 'idempotency_conflict']);
  expect(refusal(await act('retry', one, 'conflict-1'))).toEqual([409, 'idempotency_conflict']);
  expect(refusal(await act('cancel', other, 'an-upload'))).toEqual([409, 'idempotency_conflict']);
  expect((await server.json<Job>(`/v1/background_jobs/${one}`)).body.status).toBe('cancelled');
  expect((await server.json<Job>(`/v1/background_jobs/${other}`)).body.status).toMatch(/queued|processing/);
});

test('an Idempotency-Key belongs to its environment, and a refusal does not use it up', async () => {
  const stranger = await t.addEnvironment('stranger');
  const jobId = await submit();
  expect(refusal(await act('cancel', jobId, 'mine', stranger.key))).toEqual([404, 'not_found']);
  expect(refusal(await act('retry', jobId, 'mine'))).toEqual([409, 'job_not_retryable']);
  expect((await act('cancel', jobId, 'mine')).status).toBe(202);
});
