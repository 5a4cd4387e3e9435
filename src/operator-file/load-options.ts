/** How a load is asked for in a file: what schedules and the mapping.yaml of the inbox have in common. */
import { type Static, Type } from 'typebox';
import { MAX_MAPPED_COLUMNS } from '../domain/limits.ts';
import { type MaxErrors, presets } from '../domain/load.ts';
import { sourceFormats } from '../domain/source.ts';
import { choice, rule } from './schema.ts';

const shareOrCount = 'must be a number such as 100, or a share such as 5%';

/** `100`, or `5%`. */
export const maxErrors = Type.Union(
  [
    Type.Integer({ minimum: 0, maximum: 999_999_999_999_999 }),
    Type.String({ pattern: '^(\\d{1,15}|(\\d{1,2}(\\.\\d{1,6})?|100(\\.0{1,6})?)%)$' }),
  ],
  {
    description: 'More refused records than this, a number or a share, fail the load.',
    problem: rule(shareOrCount),
  },
);

export function readMaxErrors(value: Static<typeof maxErrors> | undefined): MaxErrors | null {
  if (value === undefined) return null;
  if (typeof value === 'string' && value.endsWith('%')) return { percent: Number(value.slice(0, -1)) };
  return { count: Number(value) };
}

/** Their header → our name. */
export const columnMap = Type.Unsafe<Readonly<Record<string, string>>>({
  type: 'object',
  description: 'Their header → our name.',
  additionalProperties: {
    type: 'string',
    description: 'Our name.',
    minLength: 1,
    maxLength: 255,
    problem: rule('must be our name for the column'),
  },
  maxProperties: MAX_MAPPED_COLUMNS,
  problem: (value: unknown, keyword: string) =>
    keyword === 'maxProperties'
      ? `has more than ${MAX_MAPPED_COLUMNS} names`
      : rule('must be pairs such as `Customer ID: user_id`')(value),
});

export const preset = choice(
  [...presets],
  'The product whose export files they are, JSON or NDJSON; not together with map.',
);

export const fileFormat = choice([...sourceFormats], 'Default: found out.');

export const ifDuplicate = choice(
  ['skip', 'load', 'reject'],
  'What to do with bytes that were loaded before.',
);
