import contentDisposition from 'content-disposition';
import { type TSchema, Type } from 'typebox';
import { isUuid, optional, ruled } from '../../base/validation.ts';
import { withoutHidden } from '../../base/wording.ts';
import { readColumnMap } from '../../domain/column-map.ts';
import type { LoadEntity } from '../../domain/entity.ts';
import {
  guardPattern,
  guardRule,
  readLimits,
  readVolumeGuard,
  volumeGuardRule,
} from '../../domain/guards.ts';
import { defaultLoadOptions, type LoadOptions } from '../../domain/load.ts';
import { type GivenSource, type OptionTable, refuseProblems } from '../../domain/option-table.ts';
import { presets, type SourceFormat, type SourceOptions, sourceFormats } from '../../domain/source.ts';
import { exampleJobId } from '../../http/job.ts';
import { checked, flagParameter, optionalChoice } from '../../http/parameters.ts';
import { compileTexts, optionFields } from '../../http/plugins/validation.ts';

export function uploadOptions(table: OptionTable, entities: readonly LoadEntity[]) {
  const choices = entities.length === 1 ? `${entities[0]} here` : 'users or companies';
  const description = 'Kind of records. For CSV, the default is taken from the header.';
  return {
    entity: optionalChoice(entities, `entity must be ${choices}`, description),
    ...commonOptions(table),
  };
}

const inForms = ' In a form, it must come before the file.';

export const importOptions = {
  upload_id: Type.Optional(
    ruled(
      Type.String({
        description: 'ID of a file that was sent before, to load in place of a file in this request.',
        examples: ['01a1f8d2-fdea-7c7d-a3a4-5f3b5d7e9c01'],
      }),
      (text) => (isUuid(text) ? null : 'upload_id must be the id of an upload'),
    ),
  ),
  options_of: Type.Optional(
    ruled(
      Type.String({
        description: `ID of an earlier load. Its map, preset, dialect, entity and limits (as numbers) apply unless the request gives them. Its guard and options about that file alone do not.${inForms}`,
        examples: [exampleJobId],
      }),
      (text) => (isUuid(text) ? null : 'options_of must be the job_id of an earlier load'),
    ),
  ),
};

const commonOptions = (table: OptionTable) => ({
  map: Type.Optional(
    ruled(
      Type.Array(Type.String(), {
        description:
          'Maps columns or keys of the file to fields, as `Their Header=user_id`. Give it several times, with commas between the pairs, or as a JSON object. If the file has no header, columns are numbered from 1.',
        examples: [['Customer No=user_id', 'Mail=email'], ['{"A,b=c":"user_id"}']],
      }),
      (texts) => {
        const map = readColumnMap(texts);
        return typeof map === 'string' ? map : null;
      },
    ),
  ),
  preset: optionalChoice(
    presets,
    `preset must be one of ${presets.join(', ')}`,
    'The product whose export the file is. Its records become users, companies and events. Not together with `map`.',
  ),
  dry_run: flagParameter('dry_run', 'Reads and checks everything, and writes nothing.', { default: false }),
  plan: flagParameter(
    'plan',
    'Reads and checks everything, writes nothing, and keeps a plan of the changes: see `/v1/background_jobs/{job_id}/plan`. The job can be applied afterwards.',
    { default: false },
  ),
  max_errors: guardOption('max_errors', 'records than this are refused'),
  max_changed: guardOption('max_changed', 'profiles than this would change'),
  max_removed_values: guardOption('max_removed_values', 'property values than this would be removed'),
  guard: Type.Optional(
    checked(
      Type.String({
        description:
          'Holds the job if its file is unlike the latest loads of the same source (`usual`), or unlike these figures, any of `rows`, `max_rejected` and `columns`; also as a JSON object. Nothing is written until a person decides.',
        examples: ['usual', 'rows=900..1100 max_rejected=2% columns=user_id,plan'],
      }),
      (text) => readVolumeGuard(text) !== undefined,
      `guard ${volumeGuardRule}`,
    ),
  ),
  if_duplicate: optionalChoice(
    ['load', 'skip', 'reject'],
    'if_duplicate must be load, skip or reject',
    'What to do if the same bytes were loaded before: load them again, return the earlier job, or refuse with `duplicate_file`. The last two count bytes that are being loaded too.',
    'load',
  ),
  format: optionalChoice(
    sourceFormats,
    `format must be one of ${sourceFormats.join(', ')}`,
    `Format of the file. Default: detected from content, name and media type.${inForms}`,
  ),
  ...sourceFields(table),
  filename: Type.Optional(
    ruled(Type.String({ description: 'Name of the file in the job record.' }), (text) =>
      cleanFilename(text) === undefined ? 'filename must be a file name' : null,
    ),
  ),
});

function gather(fields: readonly GivenOption[]): Record<string, string[]> {
  const texts = new Map<string, string[]>();
  for (const [name, text] of fields) texts.set(name, [...(texts.get(name) ?? []), text]);
  return Object.fromEntries(texts);
}

function sourceFields(table: OptionTable): Record<never, TSchema> {
  const fields = table.names.map((name): [string, TSchema] => {
    const { description, ...schema } = table.schemaOf(name);
    const inForm = Type.Unsafe<unknown>({ ...schema, description: description + inForms });
    const isRight = (value: unknown) => table.problem(name, value) === null;
    return [name, Type.Optional(checked(inForm, isRight, `${name} ${table.option(name).rule}`))];
  });
  return Object.fromEntries(fields);
}

function guardOption(name: string, what: string) {
  const text = Type.String({
    pattern: guardPattern,
    description: `Fails the job if more ${what}: a number, or a share of the records. Nothing is written then.`,
    examples: ['5%'],
  });
  return optional(text, `${name} ${guardRule}`);
}

/** Option from the query or from a form field. A name may occur several times. */
export type GivenOption = readonly [name: string, value: string];

export function queryOptions(query: unknown): GivenOption[] {
  return Object.entries(query as Record<string, string | string[]>).flatMap(([name, values]) =>
    [values].flat().map((value): GivenOption => [name, value]),
  );
}

export interface UploadOptions {
  readonly load: LoadOptions;
  readonly format: SourceFormat | undefined;
  readonly filename: string | undefined;
  readonly uploadId: string | undefined;
}

export type ReadOptions = (fields: readonly GivenOption[]) => UploadOptions;

export function optionsReader(
  table: OptionTable,
  entities: readonly LoadEntity[],
  isImport = false,
): ReadOptions {
  const all = { ...uploadOptions(table, entities), ...importOptions };
  const fields: typeof all = isImport ? all : (uploadOptions(table, entities) as typeof all);
  const read = compileTexts(optionFields(fields));
  const fixed = entities.length === 1 ? entities[0] : undefined;
  return (given) => {
    const options = read(gather(given));
    const map = readColumnMap(options.map ?? []);
    const defaults = defaultLoadOptions;
    return {
      load: {
        entity: options.entity ?? fixed ?? defaults.entity,
        map: typeof map === 'string' ? {} : map,
        preset: options.preset ?? defaults.preset,
        optionsOf: options.options_of?.toLowerCase() ?? defaults.optionsOf,
        dryRun: options.dry_run ?? defaults.dryRun,
        plan: options.plan ?? defaults.plan,
        ...readLimits(options),
        guard: readVolumeGuard(options.guard) ?? defaults.guard,
        ifDuplicate: options.if_duplicate ?? defaults.ifDuplicate,
        source: readSource(table, options),
      },
      format: options.format,
      filename: options.filename === undefined ? undefined : cleanFilename(options.filename),
      uploadId: options.upload_id?.toLowerCase(),
    };
  };
}

function readSource(table: OptionTable, options: GivenSource): SourceOptions {
  const source = table.read(options);
  refuseProblems(table.contradictions(source));
  return source;
}

const maxCharacters = 255;

/**
 * Returns the name for display, without folders. It must not be used as a path. Returns `undefined`
 * if the name is empty.
 */
export function cleanFilename(name: string): string | undefined {
  const last = name.toWellFormed().split(/[\\/]/).at(-1) ?? '';
  const clean = withoutHidden(last).trim();
  return Array.from(clean).slice(0, maxCharacters).join('') || undefined;
}

export function dispositionFilename(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  const { 'filename*': extended, filename } = contentDisposition.parse(header).parameters;
  if (filename === undefined) return undefined;
  // Node decodes headers as latin1, but file names in headers are mostly in UTF-8.
  return cleanFilename(extended === undefined ? Buffer.from(filename, 'latin1').toString('utf8') : filename);
}
