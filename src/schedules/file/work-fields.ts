import { entities } from '../../domain/entity.ts';
import type { Problem } from '../../domain/errors.ts';
import { readRequest } from '../../export/read-request.ts';
import { type Field, maybe, optional } from '../../operator-file/field.ts';
import { objectOf } from '../../operator-file/object-field.ts';
import type { Problems } from '../../operator-file/problems.ts';
import { choice, text, wholeNumber } from '../../operator-file/scalar-fields.ts';
import { placeAt, type SourceNode } from '../../operator-file/source.ts';
import {
  relativeRanges,
  type ScheduledExport,
  type ScheduledLoad,
  type SourceDefinition,
} from '../schedule.ts';
import { filesField, httpField, postgresField, s3Field } from './source-fields.ts';
import { anything, checkedText, maxErrorsField, texts } from './text-fields.ts';

const sourceNames = ['files', 'http', 'postgres', 's3'] as const;

const load = objectOf(
  'a load',
  'What is loaded. Exactly one of files, http, postgres and s3 says from where.',
  {
    files: maybe(filesField),
    http: maybe(httpField),
    postgres: maybe(postgresField),
    s3: maybe(s3Field),
    entity: optional(
      choice(['auto', ...entities], 'What the records are; auto: each says so by its keys.'),
      'auto',
    ),
    map: optional(
      texts('Their header → our name.', text({ maxChars: 255, description: 'Our name.' }), (name) =>
        name === '' ? 'is empty' : null,
      ),
      {},
    ),
    format: maybe(choice(['csv', 'ndjson', 'json'], 'Default: found out.')),
    max_errors: maybe(maxErrorsField),
    if_duplicate: optional(
      choice(['skip', 'load', 'reject'], 'What to do with bytes that were loaded before.'),
      'skip',
    ),
  },
);

export const loadField: Field<ScheduledLoad> = {
  schema: { ...load.schema, oneOf: sourceNames.map((name) => ({ required: [name] })) },
  read(node, problems) {
    const value = load.read(node, problems);
    if (node.kind !== 'object') return undefined;
    const named = node.members.filter(({ name }) => sourceNames.some((each) => each === name));
    if (named.length !== 1) {
      const at = named[1] ?? node;
      problems.note(at, node.path, `must have exactly one of ${sourceNames.join(', ')}`);
      return undefined;
    }
    const source: SourceDefinition | null | undefined =
      value?.files ?? value?.http ?? value?.postgres ?? value?.s3;
    if (value === undefined || source == null) return undefined;
    const { entity, map, max_errors, if_duplicate, format } = value;
    return {
      kind: 'load',
      source,
      format,
      options: { entity, map, dryRun: false, maxErrors: max_errors, ifDuplicate: if_duplicate },
    };
  },
};

/** These are the request's own, which says what is wrong with them. */
const requestFields = {
  from: anything({ type: 'string', description: 'A day or an instant; included.' }),
  to: anything({ type: 'string', description: 'A day, included, or an instant, excluded.' }),
  event_type: anything({ description: 'Datasets and events.' }),
  user_id: anything({ description: 'Users.' }),
  company_id: anything({ description: 'Companies.' }),
  segment_id: anything({ description: 'A segment.' }),
  exclusions: anything({ description: 'What is left out.' }),
  format: anything({ enum: ['ndjson', 'csv', 'parquet'] }),
  compression: anything({ enum: ['gzip', 'none'] }),
  escape_formulas: anything({ type: 'boolean' }),
  emails: anything({ description: 'Addresses that get the links.' }),
};
const requestNames = Object.keys(requestFields) as (keyof typeof requestFields)[];

const exported = objectOf('an export', 'What is exported: as in a request for an export, and besides', {
  range: maybe(choice(relativeRanges, 'Days and months in the time zone of the schedule.')),
  retention_days: maybe(
    wholeNumber('Days that the files are kept; default: EXPORT_RETENTION_DAYS.', 0, 36_500),
  ),
  to_dir: maybe(
    checkedText(
      { maxChars: 1_000, description: 'Folder to copy the files to, below one of SCHEDULES_EXPORT_ROOTS.' },
      (value) => (value.split(/[\\/]/).includes('..') ? 'must not hold ..' : null),
    ),
  ),
  ...Object.fromEntries(requestNames.map((name) => [name, { ...requestFields[name], fallback: null }])),
}) as Field<
  Pick<ScheduledExport, 'range'> & {
    readonly retention_days: number | null;
    readonly to_dir: string | null;
  } & Record<string, unknown>
>;

export const exportField: Field<ScheduledExport> = {
  schema: exported.schema,
  read(node, problems) {
    const value = exported.read(node, problems);
    if (value === undefined) return undefined;
    const { range, retention_days, to_dir } = value;
    const body = Object.fromEntries(
      requestNames.filter((name) => value[name] !== null).map((name) => [name, value[name]]),
    );
    if (range !== null && (body['from'] !== undefined || body['to'] !== undefined)) {
      problems.note(placeAt(node, ['range']), node.path, 'has a range as well as from or to; leave one out');
    }
    for (const problem of readRequest(body).problems) noteRequest(node, problem, problems);
    return { kind: 'export', range, body, retentionDays: retention_days, toDir: to_dir };
  },
};

/** The place of a problem of a request is `name`, `name[0]` or `name.member`. */
function noteRequest(node: SourceNode, { message, details }: Problem, problems: Problems): void {
  const keys = details.split(/[.[\]]+/).filter((key) => key !== '');
  problems.note(placeAt(node, keys), `${node.path}.${details}`, `is wrong: ${message}`);
}
