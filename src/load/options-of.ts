import { inputError } from '../base/errors.ts';
import type { LoadOptions } from '../domain/load.ts';
import { type OptionTable, refuseProblems } from '../domain/option-table.ts';
import type { Database } from '../postgres/database.ts';
import { readLoadOptions } from './read-store.ts';

/**
 * Adds the options of the load in `options_of` that the request does not set. Volume guards and
 * options for a single file do not fit a file of a few corrected records.
 * @throws InputError `not_found`, or `invalid_field` for contradictions and missing options
 */
export async function withOptionsOf<T extends Omit<LoadOptions, 'dryRun' | 'plan' | 'ifDuplicate'>>(
  { db, optionTable }: { readonly db: Database; readonly optionTable: OptionTable },
  environmentId: number,
  request: T,
): Promise<T> {
  const { optionsOf } = request;
  if (optionsOf === null) {
    refuseProblems(optionTable.unmetNeeds(request.source));
    return request;
  }
  const details = `options_of: ${optionsOf}`;
  const earlier = await readLoadOptions(db, environmentId, optionsOf);
  if (earlier === null) throw inputError('not_found', 'There is no load of a file with this job_id', details);
  const source = { ...optionTable.reusable(earlier.source), ...request.source };
  const [problem] = [...optionTable.contradictions(source), ...optionTable.unmetNeeds(source)];
  if (problem !== undefined) {
    const message = `With the options of the earlier load, ${problem.name} ${problem.what}`;
    throw inputError('invalid_field', message, details);
  }
  const isMapped = request.preset !== null || Object.keys(request.map).length > 0;
  return {
    ...request,
    entity: request.entity === 'auto' ? earlier.entity : request.entity,
    map: isMapped ? request.map : earlier.map,
    preset: isMapped ? request.preset : earlier.preset,
    source,
    maxErrors: request.maxErrors ?? limitOf(earlier.maxErrors),
    maxChanged: request.maxChanged ?? limitOf(earlier.maxChanged),
    maxRemovedValues: request.maxRemovedValues ?? limitOf(earlier.maxRemovedValues),
  };
}

function limitOf(count: number | null): { readonly count: number } | null {
  return count === null ? null : { count };
}
