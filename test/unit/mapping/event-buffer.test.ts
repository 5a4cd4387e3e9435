import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { EventBuffer, instantChars } from '../../../src/load/map/event-buffer.ts';

const origin = { environmentId: 7, acceptedAt: '2026-11-20T08:00:00.000001Z' };

interface EventFields {
  readonly user?: string;
  readonly id?: string;
  readonly kind?: 'track' | 'page_view';
  readonly name?: string;
  readonly at?: string | null;
}

function add(events: EventBuffer, record: number, fields: EventFields = {}): void {
  const { user = 'u1', id, kind = 'track', name = 'Paid', at = '2026-03-04T05:06:07.000000Z' } = fields;
  let to = events.startRow(200);
  const write = (text: string): void => {
    to += events.bytes.write(text, to, 'latin1');
  };
  write(`${user}\t`);
  if (id === undefined) to = events.reserveId(to);
  else write(id);
  const idEnd = to;
  write(`\t${kind}\t`);
  const nameStart = to;
  write(name);
  const nameEnd = to;
  write('\t\\N\timport\t');
  const timeStart = to;
  write(at ?? '-'.repeat(instantChars));
  const ms = at === null ? null : Date.parse(at);
  write('\t{"a": 1}');
  const places = { idEnd, nameStart, nameEnd, timeStart };
  events.endRow({ kind, hasId: id !== undefined, ms, ...places }, to, record);
}

function bufferOf(...rows: readonly EventFields[]): EventBuffer {
  const events = new EventBuffer();
  events.reset(origin);
  for (const [record, row] of rows.entries()) add(events, record, row);
  return events;
}

const lines = (text: Buffer): string[][] =>
  text
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split('\t'));
const ids = (events: EventBuffer): (string | undefined)[] => lines(events.text()).map(([, , id]) => id);
const sha = (row: string): Buffer => createHash('sha256').update(row).digest();
const idOf = (row: string): string => sha(row).toString('base64url').slice(0, 12);
const content = (occurrence: number, time = '2026-03-04T05:06:07.000000Z'): string =>
  `7\tu1\t${String(occurrence).padStart(12, '0')}\ttrack\tPaid\t\\N\timport\t${time}\t{"a": 1}`;

// proves: content-ids
it('the id of an event is a hash of its content, which no release may change', () => {
  expect(ids(bufferOf({}))).toEqual(['KxgOZ7FJiitn']);
  expect(ids(bufferOf({}))).toEqual([idOf(content(0))]);
});

it('the id of an event distinguishes the occurrences of one content', () => {
  const events = bufferOf({}, { name: 'Left' }, {}, {});
  const [firstId, , secondId, thirdId] = ids(events);
  expect([firstId, secondId, thirdId]).toEqual([idOf(content(0)), idOf(content(1)), idOf(content(2))]);
  expect(events.countByKind().track.repeated).toBe(0);
});

it('the id of an event does not depend on the time of the load', () => {
  const events = bufferOf({ at: null });
  const [row = []] = lines(events.text());
  expect(row[2]).toBe(idOf(content(0, '0'.repeat(instantChars))));
  expect(row[7]).toBe(origin.acceptedAt);
});
