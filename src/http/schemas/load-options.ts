import type { Entity, LoadEntity } from '../../domain/entity.ts';
import { InputError } from '../../domain/errors.ts';
import { defaultLoadOptions, type LoadOptions, type MaxErrors } from '../../domain/load.ts';
import { readColumnMap } from './column-map.ts';
import { cleanFilename } from './filename.ts';
import { type GivenOption, OptionValues } from './option-values.ts';

const known = ['entity', 'map', 'dry_run', 'max_errors', 'if_duplicate', 'format', 'filename'];

export interface UploadOptions {
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
