/* The form of an export as it stands in the address, and the same as request body, command line and schedule. */
import { exportFormatFacts, isExportFormat } from '../../../../domain/export.ts';
import { authorization, command, scheduleHead, shellWord } from '../../lib/repeat.ts';

/** The fields of the form, by their names in the address. */
export const fields = [
  'kinds',
  'events',
  'from',
  'to',
  'zone',
  'segment_id',
  'user_id',
  'company_id',
  'leave_out',
  'exclusions',
  'format',
  'compression',
  'layout',
  'formulas',
  'emails',
] as const;

export type Field = (typeof fields)[number];
/** The value of each field; '' for what is not given. */
export type Wish = Readonly<Record<Field, string>>;

export type Body = Readonly<Record<string, string | readonly string[] | boolean>>;

/** Splits ids, addresses or terms, which are written one a line or with commas between them. */
export function listOf(text: string): readonly string[] {
  return text
    .split(/[\n,]/)
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** Returns the body of the request; empty fields are left out. */
export function bodyOf(wish: Wish): Body {
  const body: Record<string, string | readonly string[] | boolean> = {};
  const put = (name: string, value: string | readonly string[]): void => {
    if (value.length > 0) body[name] = value;
  };
  put('from', edge(wish.from, wish.zone, 0));
  put('to', edge(wish.to, wish.zone, 1));
  put('event_type', [...listOf(wish.kinds), ...listOf(wish.events)]);
  put('user_id', listOf(wish.user_id));
  put('company_id', listOf(wish.company_id));
  put('segment_id', wish.segment_id);
  const left = [...listOf(wish.leave_out).map((name) => `property:${name}`), ...listOf(wish.exclusions)];
  put('exclusions', left.join(','));
  put('layout', wish.layout);
  put('format', wish.format);
  put('compression', formatOf(wish).isPackedInside ? '' : wish.compression);
  if (wish.formulas === 'keep') body['escape_formulas'] = false;
  put('emails', listOf(wish.emails));
  return body;
}

/** Returns the facts of the chosen format; an address may name one that does not exist. */
export function formatOf({ format }: Wish) {
  return exportFormatFacts[isExportFormat(format) ? format : 'ndjson'];
}

/** Returns a day of UTC as it is; a day of the reader's zone as the instant at which it, or the next day, begins. */
function edge(day: string, zone: string, days: 0 | 1): string {
  if (day === '' || zone !== 'local') return day;
  const [year = 0, month = 1, date = 1] = day.split('-').map(Number);
  return new Date(year, month - 1, date + days).toISOString();
}

const flags: readonly (readonly [field: string, flag: string])[] = [
  ['from', '--from'],
  ['to', '--to'],
  ['event_type', '--event-type'],
  ['user_id', '--user'],
  ['company_id', '--company'],
  ['segment_id', '--segment'],
  ['layout', '--layout'],
  ['format', '--format'],
  ['compression', '--compression'],
];

export function commandOf(body: Body): string {
  const words = flags.flatMap(([field, flag]) => {
    const value = body[field];
    if (value === undefined || typeof value === 'boolean') return [];
    return [value].flat().map((each) => `${flag} ${shellWord(each)}`);
  });
  const { exclusions = '' } = body;
  const left = typeof exclusions === 'string' ? listOf(exclusions) : [];
  const more = [
    ...left.map((term) => `--exclude ${shellWord(term)}`),
    ...(body['escape_formulas'] === false ? ['--no-escape-formulas'] : []),
  ];
  return command(['sluice export --out export', ...words, ...more]);
}

export function curlOf(body: object, url: string, method?: 'DELETE'): string {
  const head = `curl ${method === undefined ? '' : `-X ${method} `}${authorization} -H "Content-Type: application/json"`;
  return command([head, shellWord(url), `-d ${shellWord(JSON.stringify(body))}`]);
}

/** Writes values as JSON, which YAML is a superset of. */
export function scheduleOf(body: Body, zone: string): string {
  const { from: _from, to: _to, ...rest } = body;
  const lines = Object.entries(rest).map(([name, value]) => `      ${name}: ${JSON.stringify(value)}`);
  return [
    ...scheduleHead('my-export'),
    `    timezone: ${zone}`,
    '    export:',
    '      range: yesterday',
    ...lines,
  ].join('\n');
}
