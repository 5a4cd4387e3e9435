import { type Static, type TSchema, Type } from 'typebox';
import { isTimeZone } from '../../base/instant.ts';
import {
  anything,
  choice,
  exactlyOne,
  flag,
  itemName,
  listOf,
  mailAddress,
  objectOf,
  published,
  rule,
  type TextRule,
  text,
  wholeNumber,
  withDefault,
} from '../../base/operator-file/schema.ts';
import { ruled } from '../../base/validation.ts';
import { entities } from '../../domain/entity.ts';
import type { Outcome } from '../../domain/job.ts';
import { loadMembers } from '../../domain/load-options.ts';
import type { OptionTable } from '../../domain/option-table.ts';
import type { ExportOptions } from '../../export/options.ts';
import { cronProblem, relativeRanges } from './due-times.ts';
import { placeholders } from './source.ts';

/**
 * Maximum number of schedules in an environment. Every worker reads all schedules every
 * RECONCILE_MS.
 */
export const MAX_SCHEDULES = 100;
const MAX_NOTIFY_EMAILS = 20;

export const notifiedEnds = [
  'completed',
  'completed_with_rejects',
  'held',
  'failed',
] as const satisfies Outcome[];

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export function millisecondsOf(duration: string): number {
  return Number(duration.slice(0, -1)) * (unitMs[duration.slice(-1)] ?? Number.NaN);
}

export function duration(description: string, leastMs: number, mostMs: number) {
  const schema = Type.String({
    description,
    pattern: '^[1-9]\\d{0,5}[smhd]$',
    problem: rule('must be a time such as 30m, 24h or 7d'),
  });
  return Type.Refine(
    schema,
    (value) => millisecondsOf(value) >= leastMs && millisecondsOf(value) <= mostMs,
    (value) => rule(`must be ${leastMs / 1_000} to ${mostMs / 1_000} seconds`)(value),
  );
}

const secretText = (rules: TextRule) => text({ ...rules, problem: (value) => placeholders.problemOf(value) });

const withoutDots = (path: string) => (path.split(/[\\/]/).includes('..') ? 'must not hold ..' : null);

const maxNameBytes = 255;
const folderProblem = (path: string) =>
  path.split('/').some((name) => Buffer.byteLength(name) > maxNameBytes)
    ? `must not hold a name of more than ${maxNameBytes} bytes`
    : withoutDots(path);

const timeZone = text({
  maxChars: 64,
  description: 'A time zone such as Europe/Berlin.',
  problem: (value) => (isTimeZone(value) ? null : 'is no time zone; write one such as Europe/Berlin or UTC'),
});

const files = objectOf('files', 'Files of this machine.', {
  pattern: text({
    maxChars: 1_000,
    description:
      'Path with *, ?, [a-z] and ** (any depth of folders), in the folder of the environment below SCHEDULES_LOCAL_ROOTS.',
    problem: withoutDots,
  }),
});

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;
const ownHeaders = new Set([
  ...['host', 'connection', 'content-length', 'transfer-encoding', 'upgrade', 'te', 'trailer', 'expect'],
  ...['accept-encoding', 'if-none-match', 'if-modified-since', 'range'],
]);
const maxHeaders = 1_000;

function headerProblem(name: string): string | null {
  if (!headerName.test(name)) return 'is no name of a header';
  return ownHeaders.has(name.toLowerCase()) ? 'is set by sluice itself' : null;
}

const headers = Type.Unsafe<Readonly<Record<string, string>>>({
  type: 'object',
  description: 'Headers of the request.',
  additionalProperties: secretText({ maxChars: 8_000, description: 'May hold ${env:SCHEDULE_…}.' }),
  propertyNames: ruled(Type.String(), headerProblem),
  maxProperties: maxHeaders,
  problem: rule(`must be an object of at most ${maxHeaders} texts`),
});

const http = objectOf('http', 'A file that a web server has.', {
  url: secretText({ maxChars: 4_000, description: 'https://…; may hold ${env:SCHEDULE_…}.' }),
  headers: withDefault(headers, {}),
  allow_http: withDefault(flag('Unencrypted http:// too.'), false),
  allow_private: withDefault(
    flag(
      'Addresses of private networks and of this machine too; SCHEDULES_ALLOW_PRIVATE must allow it as well.',
    ),
    false,
  ),
});

const parameterName = /^[a-z][a-z0-9_]{0,62}$/;
const parameters = Type.Unsafe<Readonly<Record<string, string>>>({
  type: 'object',
  description: 'Values for the {placeholders} of the command. None begins with -.',
  additionalProperties: text({
    maxChars: 1_000,
    description: 'A value.',
    problem: (value) => (value.startsWith('-') ? 'must not begin with -' : null),
  }),
  propertyNames: ruled(Type.String(), (each) =>
    parameterName.test(each) ? null : 'must be a-z, 0-9 and _, the first a letter',
  ),
  maxProperties: 100,
  problem: rule('must be an object of at most 100 texts'),
});

const command = objectOf('command', 'What a command of SOURCE_COMMANDS prints.', {
  name: text({ maxChars: 63, description: 'Name of the command in SOURCE_COMMANDS.' }),
  parameters: withDefault(parameters, {}),
});

const s3 = objectOf('s3', 'Objects in a bucket.', {
  url: text({
    maxChars: 1_200,
    pattern: ['^s3://[a-z0-9][a-z0-9.-]{1,62}(/[^\\u0000-\\u001f]*)?$', 'must be s3://bucket/prefix'],
    description: 's3://bucket/prefix: every object whose key begins so.',
  }),
  endpoint: Type.Optional(
    text({
      maxChars: 500,
      pattern: ['^https?://[^@\\s]+$', 'must be a URL without user and password'],
      description: 'For other services than that of Amazon.',
    }),
  ),
  region: Type.Optional(
    text({
      maxChars: 50,
      pattern: ['^[a-z0-9-]+$', 'must be a region such as eu-central-1'],
      description: 'Region of the bucket.',
    }),
  ),
  access_key: secretText({ maxChars: 500, description: 'Is ${env:SCHEDULE_…}.' }),
  secret_key: secretText({ maxChars: 500, description: 'Is ${env:SCHEDULE_…}.' }),
});

const sources = { files, http, s3, command } as const;
export type SourceKind = keyof typeof sources;
export const sourceKinds = Object.keys(sources) as readonly SourceKind[];

export interface JobOptions {
  readonly optionTable: OptionTable;
  readonly exportOptions: ExportOptions;
}

const load = (table: OptionTable) =>
  Type.Object(
    {
      ...Type.Partial(Type.Object(sources)).properties,
      entity: withDefault(
        choice(['auto', ...entities], 'What the records are; auto: each says so by its keys.'),
        'auto',
      ),
      ...loadMembers(table),
    },
    {
      title: 'a load',
      description: `What is loaded. Exactly one of ${sourceKinds.join(', ')} says from where.`,
      additionalProperties: false,
      ...exactlyOne(sourceKinds, `must have exactly one of ${sourceKinds.join(', ')}`),
    },
  );

/** Members of an export request. `checkExport` checks them with the reader of export requests. */
const requestMembers = ({ schema }: ExportOptions): Record<never, TSchema> =>
  Object.fromEntries(
    Object.entries<TSchema>(schema.properties).map(([name, member]) => [
      name,
      Type.Optional(anything(member)),
    ]),
  );

const exported = (exportOptions: ExportOptions) =>
  objectOf('an export', 'What is exported: as in a request for an export, and besides', {
    range: Type.Optional(choice(relativeRanges, 'Days and months in the time zone of the schedule.')),
    retention_days: Type.Optional(
      wholeNumber('Days that the files are kept; default: EXPORT_RETENTION_DAYS.', 0, 36_500),
    ),
    to_dir: Type.Optional(
      text({
        maxChars: 1_000,
        description: 'Folder to copy the files to, in that of the environment below SCHEDULES_EXPORT_ROOTS.',
        problem: folderProblem,
      }),
    ),
    ...requestMembers(exportOptions),
  });

const notify = objectOf('notify', 'Who is notified of the end of a run.', {
  emails: listOf(mailAddress, 'Addresses.', MAX_NOTIFY_EMAILS),
  on: withDefault(
    listOf(
      choice(notifiedEnds, 'An end.'),
      'Which ends send a message; default: all. held: a load waits for a person.',
      notifiedEnds.length,
    ),
    [...notifiedEnds],
  ),
});

const members = ({ optionTable, exportOptions }: JobOptions) => ({
  name: itemName('What its runs are listed under; its memory hangs on it.'),
  cron: text({
    maxChars: 200,
    description: 'Minute, hour, day of the month, month, day of the week; or a name such as @daily.',
    problem: cronProblem,
  }),
  timezone: Type.Optional(timeZone),
  enabled: withDefault(flag('false: it is not due at all.'), true),
  missed: withDefault(
    choice(
      ['run_once', 'run_all', 'skip'],
      'What to do when nobody was there at a due time: the latest, all of them, or nothing.',
    ),
    'run_once',
  ),
  missed_within: withDefault(
    duration('Due times longer ago than this are not made up.', 60_000, 31 * 86_400_000),
    '1d',
  ),
  overlap: withDefault(choice(['skip', 'wait'], 'What to do when the run before is still going.'), 'skip'),
  notify: Type.Optional(notify),
  load: Type.Optional(load(optionTable)),
  export: Type.Optional(exported(exportOptions)),
});

const options = {
  title: 'a schedule',
  description: 'Something to do when it is due: a load or an export.',
  additionalProperties: false,
  ...exactlyOne(['load', 'export'], 'must have either load or export'),
};

const schedule = (jobOptions: JobOptions) => Type.Object(members(jobOptions), options);

export const schedulesSchema = (jobOptions: JobOptions) =>
  objectOf('a schedules file', 'What is to be loaded and exported, and when.', {
    timezone: withDefault(timeZone, 'UTC'),
    schedules: listOf(schedule(jobOptions), 'The schedules.', MAX_SCHEDULES),
  });

export type SchedulesFile = Static<ReturnType<typeof schedulesSchema>>;

export const oneSchedule = (jobOptions: JobOptions) => {
  const { name: required, ...others } = members(jobOptions);
  return Type.Object({ name: Type.Optional(required), ...others }, options);
};

export const publishedSchedule = (jobOptions: JobOptions) =>
  Type.Unsafe<Readonly<Record<string, unknown>>>(published(oneSchedule(jobOptions)) as TSchema);

/** Placeholders `${env:…}` are stored as written and filled in only when they are used. */
export type ScheduleDefinition = Static<ReturnType<typeof schedule>> & { readonly timezone: string };

/** Due times up to `until` have been processed. */
export interface Schedule {
  readonly environmentId: number;
  readonly environment: string;
  readonly definition: ScheduleDefinition;
  readonly until: Date;
  readonly pausedAt: Date | null;
}
export type LoadDefinition = Static<ReturnType<typeof load>>;
export type ExportDefinition = Static<ReturnType<typeof exported>> & Readonly<Record<string, unknown>>;
export type SourceDefinition<K extends SourceKind> = Static<(typeof sources)[K]>;

/** Copy of the definition, because the schedule may change while the run is open. */
export interface RunDefinition extends Pick<ScheduleDefinition, 'timezone' | 'notify' | 'load' | 'export'> {
  readonly environment: string;
}

export function requestOf(
  { schema }: ExportOptions,
  exported: ExportDefinition,
): Readonly<Record<string, unknown>> {
  const names = Object.keys(schema.properties).filter((name) => (exported[name] ?? null) !== null);
  return Object.fromEntries(names.map((name) => [name, exported[name]]));
}
