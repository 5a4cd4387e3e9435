import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import { MAX_WAITING_BYTES } from '../../../src/ingest/commit-window.ts';
import { errorsOf, openRecordSite, type RecordAnswer } from '../../support/servers/records.ts';
import { waitFor } from '../../support/wait-for.ts';

const site = await openRecordSite();
afterAll(() => site.close());

/** Returns the names of all properties `mark…` in the rows of the user `full`. */
const marks = async (table: 'users' | 'events') => {
  const rows = await site.sql<{ mark: string }>(
    `select k as mark from sluice.${table}, jsonb_object_keys(metadata) k where user_id = 'full' and k like 'mark%'`,
  );
  return rows.map(({ mark }) => mark).toSorted();
};

const kinds = [
  {
    path: '/v1/identify',
    table: 'users',
    id: { user_id: 'full' },
    elsewhere: '/v1/companies/identify',
  },
  {
    path: '/v1/track',
    table: 'events',
    id: { user_id: 'full', event_name: 'x' },
    elsewhere: '/v1/identify',
  },
] as const;

describe.each(kinds)('$path while the database hangs', ({ path, table, id, elsewhere }) => {
  test('a record within the memory for waiting records is stored, and one beyond it is refused with 503', async () => {
    // Each record consists mostly of spaces. Spaces need as much memory as properties, but are
    // parsed much faster. Parsing has to be fast, because records wait at most ten seconds.
    const textOf = (i: number) =>
      JSON.stringify({ ...id, metadata: { [`mark${100 + i}`]: 'x' } }).padEnd(1_000_000);
    const room = Math.floor(MAX_WAITING_BYTES / textOf(0).length);
    const surplus = 10;
    // The requests are small because they are compressed. Their decompressed size must count.
    const bodies = Array.from(
      { length: room + surplus },
      (_, i) => new Uint8Array(gzipSync(textOf(i), { level: 1 })),
    );
    const send = (i: number) => site.post(path, bodies[i], { headers: { 'content-encoding': 'gzip' } });
    await site.accept(path, { ...id, metadata: {} });
    const lock = await site.hold(`lock table sluice.${table} in access exclusive mode`);
    const first = site.post(path, { ...id, metadata: { mark1: 'x' } });
    await site.blocked(1);

    const answers = new Map<number, RecordAnswer>();
    const sent = bodies.map((_, i) =>
      send(i).then((answer) => {
        answers.set(i, answer);
        return answer;
      }),
    );
    await waitFor('those for which there is no room', () => answers.size >= surplus);
    const refused = [...answers.keys()];
    for (const { status, headers, body } of answers.values()) {
      expect({ status, body }).toEqual({
        status: 503,
        body: errorsOf('Service Unavailable', ['unavailable', '']),
      });
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    }
    expect(refused).toHaveLength(surplus);
    // While records for this table are refused, records for another table are accepted, and other
    // requests work.
    const other = { user_id: `beside ${table}`, company_id: `beside ${table}`, event_name: 'x' };
    await site.accept(elsewhere, other);
    expect((await site.server.fetch('/v1/background_jobs')).status).toBe(200);

    await lock.release();
    const statuses = (await Promise.all(sent)).map(({ status }) => status);
    expect(statuses).toEqual(statuses.map((_, i) => (refused.includes(i) ? 503 : 202)));
    expect((await first).status).toBe(202);
    const acceptedMarks = statuses.flatMap((status, i) => (status === 202 ? [`mark${100 + i}`] : []));
    expect(await marks(table)).toEqual(['mark1', ...acceptedMarks].toSorted());

    // When the refused records are sent again, they are stored.
    expect((await Promise.all(refused.map(send))).map(({ status }) => status)).toEqual(
      refused.map(() => 202),
    );
    expect(await marks(table)).toHaveLength(1 + room + surplus);
  });
});
