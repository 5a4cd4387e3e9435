import type { ClientBase } from 'pg';
import { type Finding, ok, warning } from '../finding.ts';

const leastWalMib = 1_024;

interface Rule {
  /** Of `pg_settings`; numbers in the unit that stands there. */
  readonly name: string;
  readonly isWrong: (value: string) => boolean;
  readonly advice: string;
}

const isOff = (value: string): boolean => value === 'off';
const isSet = (value: string): boolean => Number(value) > 0;

const rules: readonly Rule[] = [
  {
    name: 'fsync',
    isWrong: isOff,
    advice: 'A crash of the machine may destroy the database: set fsync = on.',
  },
  {
    name: 'full_page_writes',
    isWrong: isOff,
    advice: 'A crash of the machine may destroy the database: set full_page_writes = on.',
  },
  {
    name: 'synchronous_commit',
    isWrong: isOff,
    advice: 'What was answered may be lost in a crash: set synchronous_commit = on.',
  },
  {
    name: 'max_wal_size',
    isWrong: (value) => Number(value) < leastWalMib,
    advice: 'Loads of gigabytes would force checkpoint after checkpoint: set max_wal_size = 4GB.',
  },
  {
    name: 'statement_timeout',
    isWrong: isSet,
    advice:
      'Exports and deletions may take minutes in one statement: `alter role … set statement_timeout = 0`.',
  },
  {
    name: 'transaction_timeout',
    isWrong: isSet,
    advice:
      'An export reads in one transaction for as long as it takes: `alter role … set transaction_timeout = 0`.',
  },
  {
    name: 'autovacuum',
    isWrong: isOff,
    advice: 'Tables that loads update would only ever grow: set autovacuum = on.',
  },
];

/** Those that harm, each with what to do; or one finding that says that none does. */
export async function checkSettings(client: ClientBase): Promise<Finding[]> {
  const { rows } = await client.query<{ name: string; value: string; unit: string | null }>(
    'select name, setting as value, unit from pg_settings where name = any ($1)',
    [rules.map(({ name }) => name)],
  );
  const wrong = rules.flatMap(({ name, isWrong, advice }) => {
    const row = rows.find((each) => each.name === name);
    if (row === undefined || !isWrong(row.value)) return [];
    return [warning(`postgres ${name}`, `${row.value}${row.unit === null ? '' : ` ${row.unit}`}`, advice)];
  });
  return wrong.length > 0 ? wrong : [ok('postgres settings', 'nothing that harms')];
}
