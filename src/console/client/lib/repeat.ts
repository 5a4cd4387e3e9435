/* A job once more, as `curl`, on the command line, or by the clock: from the form of an export or the parameters in the ledger. */
import type { JobHistory } from '../../../api/job.ts';
import { exportFormatFacts, isExportFormat } from '../../../domain/export.ts';
import { publicUrl, session } from './api.ts';
import { isLoad, isRepeatable, type JobDetail } from './jobs.ts';

export interface Form {
  /** Such as `curl`, `Command line`. */
  readonly name: string;
  readonly text: string;
  readonly hint?: string;
}

const authorization = '-H "Authorization: Token $SLUICE_KEY"';

function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

function command(words: readonly string[]): string {
  return words.join(' \\\n  ');
}

/** Returns the flag that names the environment: a key belongs to one, the command line has to be told. */
function inEnvironment(): readonly string[] {
  const name = session.value?.environment ?? 'default';
  return name === 'default' ? [] : [`--env ${shellWord(name)}`];
}

/** Returns the forms of one job from the words of each command. */
function formsOf(curl: readonly string[], own: readonly string[]): readonly Form[] {
  return [
    { name: 'curl', text: command([`curl ${authorization}`, ...curl]) },
    { name: 'Command line', text: command([...own, ...inEnvironment()]) },
  ];
}

/** The fields of the form of an export, by their names in the address. */
export const exportFields = [
  ...(['kinds', 'events', 'from', 'to', 'zone', 'segment_id', 'user_id', 'company_id', 'leave_out'] as const),
  ...(['since', 'removed', 'exclusions', 'format', 'compression', 'layout'] as const),
  ...(['formulas', 'emails'] as const),
];

/** The value of each field; '' for what is not given. */
export type ExportWish = Readonly<Record<(typeof exportFields)[number], string>>;
type Body = Readonly<Record<string, string | readonly string[] | boolean>>;

/** Splits ids, addresses or terms, which are written one a line or with commas between them. */
export function listOf(text: string): readonly string[] {
  return text
    .split(/[\n,]/)
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** Returns the body of the request; empty fields are left out. */
export function bodyOf(wish: ExportWish): Body {
  const left = [...listOf(wish.leave_out).map((name) => `property:${name}`), ...listOf(wish.exclusions)];
  const fields = {
    from: edge(wish.from, wish.zone, 0),
    to: edge(wish.to, wish.zone, 1),
    since: wish.since,
    event_type: [...listOf(wish.kinds), ...listOf(wish.events)],
    user_id: listOf(wish.user_id),
    company_id: listOf(wish.company_id),
    segment_id: wish.segment_id,
    exclusions: left.join(','),
    layout: wish.layout,
    format: wish.format,
    compression: formatOf(wish).isPackedInside ? '' : wish.compression,
    emails: listOf(wish.emails),
  };
  const given = Object.entries(fields).filter(([, value]) => value.length > 0);
  return {
    ...Object.fromEntries(given),
    ...(wish.removed === 'yes' && wish.since !== '' && { include_removed: true }),
    ...(wish.formulas === 'keep' && { escape_formulas: false }),
  };
}

/** Returns the facts of the chosen format; an address may name one that does not exist. */
export function formatOf({ format }: ExportWish) {
  return exportFormatFacts[isExportFormat(format) ? format : 'ndjson'];
}

/** Returns a day of UTC as it is; a day of the reader's zone as the instant at which it, or the next day, begins. */
function edge(day: string, zone: string, days: 0 | 1): string {
  if (day === '' || zone !== 'local') return day;
  const [year = 0, month = 1, date = 1] = day.split('-').map(Number);
  return new Date(year, month - 1, date + days).toISOString();
}

const exportFlags: Readonly<Record<string, string>> = {
  ...{ from: '--from', to: '--to', event_type: '--event-type', user_id: '--user', company_id: '--company' },
  ...{
    since: '--since',
    segment_id: '--segment',
    layout: '--layout',
    format: '--format',
    compression: '--compression',
  },
};

const exportSwitches = [
  ['include_removed', true, '--include-removed'],
  ['wait_for_loads', true, '--wait-for-loads'],
  ['escape_formulas', false, '--no-escape-formulas'],
] as const;

export function exportForms(body: Body): readonly Form[] {
  const flags = Object.entries(exportFlags).flatMap(([field, flag]) =>
    [body[field] ?? []].flat().map((value) => `${flag} ${shellWord(String(value))}`),
  );
  const left = listOf(String(body['exclusions'] ?? '')).map((term) => `--exclude ${shellWord(term)}`);
  const switched = exportSwitches.flatMap(([field, value, flag]) => (body[field] === value ? [flag] : []));
  const url = shellWord(publicUrl('/api/v1/analytics/exports'));
  return formsOf(
    ['-H "Content-Type: application/json"', url, `-d ${shellWord(JSON.stringify(body))}`],
    ['sluice export --out export', ...flags, ...left, ...switched],
  );
}

type Parameters = JobHistory['parameters'];

function requestOf({ request, emails }: Parameters): Body {
  const mail: Body = Array.isArray(emails) && emails.length > 0 ? { emails } : {};
  return { ...((request ?? {}) as Body), ...mail };
}

/** Returns what a schedule would have to do for the same: an export, or a load without its source. */
export function workOf(
  job: JobDetail,
  { parameters }: JobHistory,
): { readonly load?: object; readonly export?: object } {
  if (!isLoad(job)) {
    const { from: _from, to: _to, since = null, ...rest } = requestOf(parameters);
    return { export: { range: since === null ? 'yesterday' : 'since_last_success', ...rest } };
  }
  const { map, guard } = parameters;
  const options = loadOptions(parameters).filter(([name]) => name !== 'dry_run' && name !== 'plan');
  return {
    load: {
      ...Object.fromEntries(options.map(([name, all]) => [name, all.length > 1 ? all : all[0]])),
      ...(guard != null && { guard }),
      ...(Object.keys(map ?? {}).length > 0 && { map }),
    },
  };
}

/** Returns the forms that a load or an export can be written in. */
export function sameAgain(
  job: JobDetail,
  { parameters, parameters_cut: isCut }: JobHistory,
): readonly Form[] {
  if (!isRepeatable(job)) return [];
  const forms = isLoad(job) ? loadForms(job, parameters) : exportForms(requestOf(parameters));
  if (!isCut) return forms;
  return forms.map((form) => ({ ...form, hint: 'Incomplete: long lists in the parameters are cut.' }));
}

function loadForms(job: JobDetail, parameters: Parameters): readonly Form[] {
  const options = loadOptions(parameters);
  const map = Object.entries((parameters['map'] ?? {}) as Readonly<Record<string, string>>);
  const mapped = map.length === 0 ? {} : { map: Object.fromEntries(map) };
  const path =
    job.type === 'import' ? '/v1/imports' : `/v1/${job.type.replace('bulk_identify_', '')}/bulk_identify`;
  const values = options.flatMap(([name, all]) => all.map((value) => [name, value] as const));
  const fields = [
    ...Object.entries(mapped).map(([, given]) => `map=${JSON.stringify(given)}`),
    ...values.map(([name, value]) => `${name}=${value}`),
  ];
  const curl = [
    ...fields.map((field) => `--form-string ${shellWord(field)}`),
    fileField(job.filename),
    publicUrl(path),
  ];
  const flags = [
    ...map.map(([theirs, ours]) => `--map ${shellWord(`${theirs}=${ours}`)}`),
    ...values.map(([name, value]) => flag(name, value)),
  ];
  return formsOf(curl, [`sluice import ${shellWord(job.filename)}`, ...flags]);
}

function flag(name: string, value: unknown): string {
  const word = `--${name.replaceAll('_', '-')}`;
  return value === true ? word : `${word} ${shellWord(String(value))}`;
}

/** Puts a name that curl would read as more than a name into quotes of curl's own. */
function fileField(filename: string): string {
  const isPlain = /^[\w.-]+$/.test(filename);
  return `-F ${shellWord(`file=@${isPlain ? filename : `"${filename.replace(/[\\"]/g, '\\$&')}"`}`)}`;
}

/** Returns the options with their values, by the names that the API, the flags and a schedule have for them. */
function loadOptions(
  parameters: Parameters,
): readonly (readonly [name: string, values: readonly unknown[]])[] {
  const { entity, preset, format, options } = parameters;
  const { max_errors, max_changed, max_removed_values, guard, dry_run, plan } = parameters;
  const all = {
    entity: entity === 'users' || entity === 'companies' ? entity : null,
    ...(preset == null ? { format } : { preset }),
    ...{ max_errors, max_changed, max_removed_values, dry_run, plan },
    guard: typeof guard === 'object' && guard !== null ? JSON.stringify(guard) : guard,
    ...(options as object | undefined),
  };
  const isGiven = (value: unknown): boolean => value !== null && value !== undefined && value !== false;
  return Object.entries(all)
    .map(([name, value]) => [name, [value].flat().filter(isGiven)] as const)
    .filter(([, values]) => values.length > 0);
}
