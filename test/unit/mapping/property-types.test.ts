import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DataType, dataTypeOf, widen } from '../../../src/domain/data-type.ts';
import { SAMPLED_ROWS } from '../../../src/load/limits.ts';
import type { Rows } from '../../../src/load/map/rows.ts';
import { readCsvRows, readNdjsonRows } from './read-rows.ts';

interface Types {
  readonly users: Record<string, DataType | null>;
  readonly companies: Record<string, DataType | null>;
}

function typesOf(rows: Rows): Types {
  const users = Object.fromEntries(rows.types.users.types());
  return { users, companies: Object.fromEntries(rows.types.companies.types()) };
}

const ofLines = (text: string): Types => typesOf(readNdjsonRows(text));

const ofCsv = (columns: readonly string[], lines: readonly string[]): Types =>
  typesOf(readCsvRows({ delimiter: ',', columns }, lines.join('\n')));

const escapeJson = (json: string) =>
  json.replace(/[^\0-\x7f]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

describe('the properties of NDJSON records', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'ü', '日', 'toString', '7');
  const value = fc.constantFrom<unknown>(1, 'x', 'ü', '2024-05-01', true, null, [1], { o: 1 });
  const item = fc.record({ within: fc.dictionary(name, value), spelled: fc.boolean() });

  it('a property of NDJSON has the type of all its values, in any order and spelling', () => {
    fc.assert(
      fc.property(fc.array(item, { maxLength: 12 }), (items) => {
        const expectedTypes = new Map<string, DataType>();
        for (const [key, each] of items.flatMap(({ within }) => Object.entries(within))) {
          const type = dataTypeOf(each);
          if (type !== null) expectedTypes.set(key, widen(expectedTypes.get(key) ?? type, type));
        }
        const lines = items.map(({ within, spelled }) => {
          const json = JSON.stringify({ user_id: 'u', metadata: within });
          return spelled ? escapeJson(json) : json;
        });
        expect(ofLines(lines.join('\n')).users).toEqual(Object.fromEntries(expectedTypes));
      }),
    );
  });

  it('a property of a company counts for the company, and ids count for neither', () => {
    const line = { user_id: 'u', age: 3, company: { id: 'c', name: 'C', metadata: { seats: 5 } } };
    expect(ofLines(`${JSON.stringify(line)}\n{"company_id":"d","since":"2024-01-01"}`)).toEqual({
      users: { age: 'numeric' },
      companies: { name: 'string', seats: 'numeric', since: 'date' },
    });
  });

  it('a property stops being a date with its first value that is not a date', () => {
    const day = '{"user_id":"u","d":"2024-01-01"}\n';
    const many = day.repeat(3 * SAMPLED_ROWS);
    expect(ofLines(many).users).toEqual({ d: 'date' });
    for (const notDate of ['"n/a"', '5', '"2024-01-01 10:00"', '{}', '12345678901234567890']) {
      expect(ofLines(`${many}{"user_id":"u","d":${notDate}}\n${day}`).users).toEqual({ d: 'string' });
    }
    expect(ofLines(`${day.repeat(9)}{"user_id":"u","d":"2024-13-01"}`).users).toEqual({ d: 'string' });
  });
});

describe('the columns of a CSV', () => {
  const columns = ['user_id', 'a', 'd', 'company_id', 'metadata.e'];

  it('a column is a date if all its filled cells at the head of the chunk are dates', () => {
    const lines = ['u,x,2024-01-01,c,', 'v,,,,2024-05-01T10:00Z', 'w,1,"2024-01-02",,'];
    expect(ofCsv(columns, lines).users).toEqual({ a: 'string', d: 'date', e: 'date' });
    expect(ofCsv(columns, [...lines, 'x,,soon,,']).users).toEqual({ a: 'string', d: 'string', e: 'date' });
  });

  it('an empty column is omitted from a short chunk, and without a type in a long one', () => {
    const long = Array.from({ length: SAMPLED_ROWS + 1 }, (_, n) => `u${n},x,,,`);
    expect(ofCsv(columns, long.slice(1)).users).toEqual({ a: 'string' });
    expect(ofCsv(columns, long).users).toEqual({ a: 'string', d: null, e: null });
  });
});
