import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { exportHeader } from '../../../src/formats/csv-text.ts';
import { hazardousText } from '../../support/formulas.ts';
import { openCsv } from './open-csv.ts';

const headerOf = (text: string) => openCsv(Buffer.from(`${text}\n`)).header;
const defusedIn = (text: string) => headerOf(text).defused ?? 'kept';

const events = 'event_id,event_type,event_name,user_id,company_id,source,inserted_at,metadata';
const stream = 'event_type,user_id,company_id,inserted_at,event_name,source,metadata';

describe('an apostrophe before a formula', () => {
  // proves: formulas
  test('is known as ours, or as part of the value, in each export as we write it, whatever its properties are called', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(
          hazardousText.filter((name) => name !== ''),
          { maxLength: 4 },
        ),
        fc.constantFrom(['user_id', 'company_id'], ['company_id']),
        fc.boolean(),
        (properties, ids, escapeFormulas) => {
          const names = [...ids, ...properties, 'first_seen_at', 'last_seen_at'];
          const text = exportHeader(names, escapeFormulas);
          expect(headerOf(text).columns).toHaveLength(names.length);
          expect(defusedIn(text)).toBe(escapeFormulas ? 'undone' : 'kept');
        },
      ),
    );
    for (const names of [events, stream]) {
      expect(defusedIn(exportHeader(names.split(','), true))).toBe('undone');
      expect(defusedIn(exportHeader(names.split(','), false))).toBe('kept');
    }
  });

  // proves: formulas
  test.each([
    events,
    stream,
    stream.replaceAll(',', ';'),
    'user_id,name,first_seen_at,last_seen_at',
    '"user_id","name","first_seen_at","last_seen_at"',
    'last_seen_at\tuser_id\tfirst_seen_at',
    '"user_id",name,first_seen_at,last_seen_at,more',
  ])('is in doubt where the columns are those of an export, but not as we write them: %s', (text) => {
    expect(defusedIn(text)).toBe('doubtful');
  });

  // proves: formulas
  test.each(['user_id,name', 'user_id,last_seen_at', `${events},more`, '"user_id",name'])(
    'is part of the value in any other file: %s',
    (text) => {
      expect(defusedIn(text)).toBe('kept');
    },
  );
});
