import { expect, test } from 'vitest';
import { checkAnswer } from '../../support/check-answer.ts';

const jobs = '/v1/background_jobs';
const id = '01a1f879-8845-7223-9ca4-ceafb3823817';
const job = {
  job_id: id,
  type: 'import',
  status: 'queued',
  filename: 'a.csv',
  file_size: 1,
  total_rows: 1,
  start_time: '2026-11-20T11:58:57.914Z',
  end_time: null,
  links: `http://127.0.0.1:1/v1/background_jobs/${id}`,
  processing_since: null,
  elapsed_time: 0,
};
const refusal = (code: string) => ({ errors: [{ error: 'x', error_code: code, message: 'x', details: '' }] });

function answer(status: number, body: unknown, headers: Record<string, string> = {}): Response {
  return new Response(body === null ? null : JSON.stringify(body), {
    status,
    headers: { 'x-request-id': 'x', 'content-type': 'application/json; charset=utf-8', ...headers },
  });
}

const counted = { 'x-total-count': '1' };

test.each([
  ['GET', jobs, answer(200, [job], counted)],
  ['GET', `${jobs}/`, answer(200, [], { ...counted, link: '<http://a/b?cursor=c>; rel="next"' })],
  ['HEAD', jobs, answer(200, null, counted)],
  ['GET', `${jobs}/${id}`, answer(404, refusal('not_found'))],
  ['POST', `${jobs}/${id}`, answer(405, refusal('method_not_allowed'), { allow: 'GET' })],
  ['GET', '/nowhere', answer(404, refusal('route_not_found'))],
  ['GET', `${jobs}/${id}/rejects`, answer(200, 'no,json', { 'content-type': 'text/csv', vary: 'accept' })],
  ['POST', '/v1/track', new Response(null, { status: 202, headers: { 'x-request-id': 'x' } })],
])('%s %s as documented passes, and can still be read', async (method, path, response) => {
  await checkAnswer(method, path, response);
  expect(response.bodyUsed).toBe(false);
});

test.each([
  ['a status', 'GET', jobs, answer(204, null), /listJobs has no answer 204; it has 200, 400/],
  ['a field', 'GET', jobs, answer(200, [{ ...job, secret: 1 }], counted), /\/0 .*properties: secret/],
  ['a value', 'GET', jobs, answer(200, [{ ...job, status: 'x' }], counted), /\/0\/status .*: queued, /],
  ['a code', 'GET', jobs, answer(400, refusal('missing_field')), /error_code .*: invalid_field, /],
  ['a media type', 'GET', jobs, answer(200, [], { ...counted, 'content-type': 'text/html' }), /text\/html/],
  ['a header that is missing', 'GET', jobs, answer(200, []), /X-Total-Count is missing/],
  ['a header', 'GET', jobs, answer(200, [], { 'x-total-count': 'many' }), /X-Total-Count may not be "many"/],
  ['a body', 'POST', '/v1/track', answer(202, {}), /must be empty/],
  ['an operation', 'DELETE', jobs, answer(200, {}), /no such operation/],
  ['an address', 'GET', '/nowhere', answer(200, {}), /no such operation/],
  ['no JSON', 'GET', jobs, new Response('{', { headers: answer(200, 0, counted).headers }), /not JSON/],
])('%s that is not in the document fails', async (_, method, path, response, message) => {
  await expect(checkAnswer(method, path, response)).rejects.toThrow(message);
});
