import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { EventBuffer, instantChars } from '../../../src/load/map/event-buffer.ts';

const origin = { environmentId: 7, acceptedAt: '2026-11-20T08:00:00.000001Z' };

interface Given {
  readonly user?: string;
  readonly id?: string;
  readonly kind?: 'track' | 'page_view';
  readonly name?: string;
  readonly at?: string | null;
}

function add(events: EventBuffer, record: number, given: Given = {}): void {
  const { user = 'u1', id, kind = 'track', name = 'Paid', at = '2026-03-04T05:06:07.000000Z' } = given;
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

function filled(...rows: readonly Given[]): EventBuffer {
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

describe('the ids of events', () => {
  // proves: content-ids
  it('are a hash of the content where the record gives none, which no release may change', () => {
    expect(ids(filled({}))).toEqual(['KxgOZ7FJiitn']);
    expect(ids(filled({}))).toEqual([idOf(content(0))]);
  });

  it('tell the occurrences of one content apart', () => {
    const events = filled({}, { name: 'Left' }, {}, {});
    const [first, , second, third] = ids(events);
    expect([first, second, third]).toEqual([idOf(content(0)), idOf(content(1)), idOf(content(2))]);
    expect(events.repeated).toBe(0);
  });

  it('do not depend on when the load was accepted, also of a row without a time', () => {
    const events = filled({ at: null });
    const [row = []] = lines(events.text());
    expect(row[2]).toBe(idOf(content(0, '0'.repeat(instantChars))));
    expect(row[7]).toBe(origin.acceptedAt);
  });
});
