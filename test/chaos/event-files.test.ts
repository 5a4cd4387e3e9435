import { describe, expect, test } from 'vitest';
import { EventOracle, type EventRecord, eventTexts } from '../support/oracles/event-oracle.ts';
import type { StoredEvent } from '../support/oracles/events.ts';
import { ended, type LedgerLoad, progressed, report } from '../support/oracles/exactness.ts';
import { anyQueue, onSite, type Site, type Sql } from '../support/servers/site.ts';

/**
 * Enough rows for three kills of workers during one load. More rows would need too much memory,
 * because the oracle of each test keeps two objects per row.
 */
const rows = 36_000;
const file = createEventFile(rows);

describe.concurrent.each([anyQueue])('with the queue on %s', (queue) => {
  // proves: events-once
  test('a file of events is exact although its workers are killed repeatedly, and a repeated load adds nothing', async () => {
    await onSite({ queue }, async (site) => {
      const { sql } = site;
      const [api, workers] = await Promise.all([site.serve(), site.workers(2)]);
      const jobId = await api.upload(file.bytes);
      for (const share of [0.2, 0.5, 0.8]) {
        await progressed(sql, jobId, share);
        await Promise.all(workers.splice(0).map((worker) => worker.kill('SIGKILL')));
        await site.expireLeases();
        workers.push(...(await site.workers(2)));
      }
      const load = await expectExactEvents(site, jobId, file.expected);
      report(`workers of a file of events killed, ${queue}: load ${load.seconds.toFixed(1)} s`);
      const again = await api.upload(file.bytes);
      const { track } = file.expected;
      const unchanged = track.inserted + track.unchanged;
      await expectExactEvents(site, again, { track: { ...track, inserted: 0, unchanged } });
    });
  });
});

interface Expected {
  readonly track: { readonly inserted: number; readonly unchanged: number; readonly superseded: number };
}

/**
 * Expects that the load completes with the right counts and events, and leaves no temporary rows.
 */
async function expectExactEvents({ sql }: Site, jobId: string, { track }: Expected): Promise<LedgerLoad> {
  const load = await ended(sql, jobId, 120_000);
  expect({ status: load.status, failure: load.failure }).toEqual({ status: 'completed', failure: null });
  expect(load).toMatchObject({ read: rows, updated: 0, rejected: 0, ...track });
  const [kind] = await sql(
    `select rows_inserted::int as inserted, rows_unchanged::int as unchanged, rows_superseded::int as superseded
     from sluice.load_kinds where load_id = $1 and kind = 'track'`,
    [load.load_id],
  );
  expect(kind).toEqual(track);
  const texts = eventTexts(await readAllEvents(sql), file.times);
  // Comparing so many lines with `toEqual` would take minutes.
  expect(texts.length).toBe(file.texts.length);
  expect(texts.find((text, index) => text !== file.texts[index])).toBeUndefined();
  const [remains] = await sql<{ notes: number }>(
    `select (select count(*)::int from sluice.load_chunk_keys where load_id = $1)
       + (select count(*)::int from sluice.load_event_replays where load_id = $1) as notes`,
    [load.load_id],
  );
  expect(remains).toEqual({ notes: 0 });
  return load;
}

async function readAllEvents(sql: Sql): Promise<StoredEvent[]> {
  const stored = await sql<Omit<StoredEvent, 'at'> & { at: Date }>(
    `select event_id as id, event_type as type, event_name as name, user_id as "user", company_id as company,
       source, inserted_at as at, metadata
     from sluice.events`,
  );
  return stored.map((event) => ({ ...event, at: event.at.toISOString() }));
}

/**
 * Creates events spread over three months. About a quarter repeat the content of other events,
 * about an eighth share an id with other events, and some have no time.
 */
function createEventFile(count: number) {
  const records = Array.from({ length: count }, (_, row): EventRecord => {
    const hash = Math.imul(row + 1, 2_654_435_761) >>> 0;
    const isRepeated = hash % 4 === 0;
    const content = isRepeated ? hash % 2_000 : row;
    const day = new Date(Date.UTC(2026, 5, 1 + (content % 90), 0, 0, content % 86_400));
    return {
      kind: 'track',
      id: hash % 8 === 1 ? `id-${hash % 3_000}` : null,
      name: ['Paid', 'Left'][content % 2] ?? '',
      user: `u${content % 500}`,
      company: content % 3 === 0 ? null : `c${content % 50}`,
      at: isRepeated && hash % 16 === 0 ? null : day.toISOString(),
      metadata: { n: String(content) },
    };
  });
  const lines = records.map(({ id, name, user, company, at, metadata }) =>
    ['track', id ?? '', name, user, company ?? '', at ?? '', metadata['n'], 'x'.repeat(120)].join(','),
  );
  const header = 'event_type,event_id,event_name,user_id,company_id,inserted_at,n,padding';
  const padded = records.map((record) => ({
    ...record,
    metadata: { n: record.metadata['n'] ?? '', padding: 'x'.repeat(120) },
  }));
  const oracle = new EventOracle();
  const { track } = oracle.load(padded);
  const { inserted = 0, unchanged = 0, superseded = 0 } = track ?? {};
  return {
    bytes: Buffer.from(`${[header, ...lines].join('\n')}\n`),
    expected: { track: { inserted, unchanged, superseded } },
    texts: oracle.texts(),
    times: new Set(records.flatMap(({ at }) => at ?? [])),
  };
}
