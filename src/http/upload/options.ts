import { type TSchema, Type } from 'typebox';
import type { Entity, LoadEntity } from '../../domain/entity.ts';
import { InputError, type Problem } from '../../domain/errors.ts';
import { MAX_MAPPED_COLUMNS } from '../../domain/limits.ts';
import { defaultLoadOptions, type LoadOptions, type MaxErrors } from '../../domain/load.ts';
import { quoteName, suggest } from '../suggest.ts';
import { cleanFilename } from './upload.ts';

/** The options of an upload, alike as parameters of the query and as fields of a form. */
export function uploadOptions(entities: readonly string[]): Record<string, TSchema> {
  return {
    entity: Type.Optional(
      Type.Enum([...entities], {
        type: 'string',
        description: 'What the records are. In a CSV the header tells, unless this does.',
      }),
    ),
    map: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'Which of their headers or keys is which of our names, as `Their Header=user_id`; may come several times, or with commas between the pairs.',
        examples: [['Customer No=user_id', 'Mail=email']],
      }),
    ),
    dry_run: Type.Optional(
      Type.Boolean({ default: false, description: 'Reads and checks everything, and writes nothing.' }),
    ),
    max_errors: Type.Optional(
      Type.String({
        pattern: '^(\\d{1,15}|\\d{1,3}(\\.\\d{1,6})?%)$',
        description: 'More refused records than this, a number or a share, fail the job.',
        examples: ['5%'],
      }),
    ),
    if_duplicate: Type.Optional(
      Type.Enum(['load', 'skip', 'reject'], {
        type: 'string',
        default: 'load',
        description:
          'What to do if the same bytes were loaded before: load them again, answer with the job that did, or refuse with `duplicate_file`.',
      }),
    ),
    format: Type.Optional(
      Type.Enum(['csv', 'ndjson', 'json'], {
        type: 'string',
        description: 'Default: by content, name and media type. In a form it must come before the file.',
      }),
    ),
    filename: Type.Optional(Type.String({ description: 'The name of the file, for the job record.' })),
  };
}

const known = ['entity', 'map', 'dry_run', 'max_errors', 'if_duplicate', 'format', 'filename'];

interface UploadOptions {
  readonly load: LoadOptions;
  readonly format: 'csv' | 'ndjson' | 'json' | undefined;
  readonly filename: string | undefined;
}

/**
 * The options of an upload, from query and form fields alike.
 * @throws InputError `invalid_field`, one problem per option at fault.
 */
export function readUploadOptions(given: readonly GivenOption[], fixed: Entity | null): UploadOptions {
  const values = new OptionValues(given, known);
  const options: UploadOptions = {
    load: {
      entity: readEntity(values, fixed),
      map: readColumnMap(values),
      dryRun: values.one('dry_run', 'true or false', readBoolean, defaultLoadOptions.dryRun),
      maxErrors: values.one('max_errors', 'a number such as 100, or a share such as 5%', readMaxErrors, null),
      ifDuplicate: values.one(
        'if_duplicate',
        'load, skip or reject',
        oneOf('load', 'skip', 'reject'),
        defaultLoadOptions.ifDuplicate,
      ),
    },
    format: values.one('format', 'csv, ndjson or json', oneOf('csv', 'ndjson', 'json'), undefined),
    filename: values.one('filename', 'a file name', cleanFilename, undefined),
  };
  const [first, ...more] = values.problems;
  if (first !== undefined) throw new InputError(first, ...more);
  return options;
}

function readEntity(values: OptionValues, fixed: Entity | null): LoadEntity {
  if (fixed === null) {
    const read = oneOf('users', 'companies', 'auto');
    return values.one('entity', 'users or companies', read, defaultLoadOptions.entity);
  }
  return values.one('entity', `${fixed} here`, oneOf(fixed), fixed);
}

function readBoolean(value: string): boolean | undefined {
  if (['true', '1', ''].includes(value)) return true;
  return ['false', '0'].includes(value) ? false : undefined;
}

function readMaxErrors(value: string): MaxErrors | undefined {
  if (/^\d{1,15}$/.test(value)) return { count: Number(value) };
  const percent = /^(\d{1,3}(?:\.\d{1,6})?)%$/.exec(value)?.[1];
  return percent !== undefined && Number(percent) <= 100 ? { percent: Number(percent) } : undefined;
}

function oneOf<const T extends string>(...allowed: T[]): (value: string) => T | undefined {
  return (value) => allowed.find((each) => each === value);
}

/** An option as it was given, in the query or as a form field; one name may come several times. */
export type GivenOption = readonly [name: string, value: string];

/** Of options that are wrong all over nobody reads more. */
const maxProblems = 100;

export function queryOptions(query: unknown): GivenOption[] {
  return Object.entries(query as Record<string, string | string[]>).flatMap(([name, values]) =>
    [values].flat().map((value): GivenOption => [name, value]),
  );
}

/** Reads options one by one, and notes everything that is wrong with them. */
class OptionValues {
  readonly problems: Problem[] = [];
  readonly #given: readonly GivenOption[];

  constructor(given: readonly GivenOption[], known: readonly string[]) {
    this.#given = given;
    for (const name of new Set(given.map(([each]) => each))) {
      if (known.includes(name)) continue;
      this.refuse(name, `${quoteName(name)} is no option here; ${suggest(name, known)}`);
    }
  }

  all(name: string): string[] {
    return this.#given.filter(([each]) => each === name).map(([, value]) => value);
  }

  /** The option's value as `read` understands it (undefined: not at all), or `fallback` if it was not given. */
  one<T, F>(name: string, rule: string, read: (value: string) => T | undefined, fallback: F): T | F {
    const values = new Set(this.all(name));
    if (values.size > 1) this.refuse(name, `${name} was given more than once, with different values`);
    for (const value of values) {
      const understood = read(value);
      if (understood !== undefined) return understood;
      this.refuse(name, `${name} must be ${rule}`);
    }
    return fallback;
  }

  refuse(name: string, message: string): void {
    if (this.problems.length === maxProblems) return;
    this.problems.push({ code: 'invalid_field', message, details: name.slice(0, 100) });
  }
}

/**
 * `map=Their Header=user_id`, several times, or several in one, with commas between. A comma may also be part of a
 * header: what stands before it belongs to the next pair if it has no `=` of its own.
 */
function readColumnMap(values: OptionValues): Record<string, string> {
  const pairs = values.all('map').flatMap((text) => splitPairs(text, values));
  if (pairs.length > MAX_MAPPED_COLUMNS) {
    values.refuse('map', `map may name ${MAX_MAPPED_COLUMNS} columns`);
    return {};
  }
  const map = new Map<string, string>();
  for (const [theirs, ours] of pairs) {
    const known = map.get(theirs) ?? ours;
    if (known !== ours) values.refuse('map', `map gives ${JSON.stringify(theirs)} two names`);
    map.set(theirs, ours);
  }
  return Object.fromEntries(map);
}

function splitPairs(text: string, values: OptionValues): [string, string][] {
  const pairs: [string, string][] = [];
  let header = '';
  for (const piece of text.split(',')) {
    const at = piece.lastIndexOf('=');
    header += at < 0 ? `${piece},` : piece.slice(0, at);
    if (at < 0) continue;
    const pair: [string, string] = [header.trim(), piece.slice(at + 1).trim()];
    if (pair.includes('')) values.refuse('map', 'map must be pairs like Their Header=user_id');
    else pairs.push(pair);
    header = '';
  }
  if (header.replaceAll(',', '').trim() !== '' || text.trim() === '') {
    values.refuse('map', 'map must be pairs like Their Header=user_id');
  }
  return pairs;
}
