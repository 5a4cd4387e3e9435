/* What an export is asked for: the form as it stands in the address, and the same as body, command line and schedule. */
import { exportFormatFacts, isExportFormat } from '../../../domain/export-format.ts';
import { shellWord } from '../ui/copy.tsx';

/** Every field by its name in the address; '' for what is not given. */
export interface Wish {
  readonly kinds: string;
  readonly events: string;
  readonly from: string;
  readonly to: string;
  readonly zone: string;
  readonly segment_id: string;
  readonly user_id: string;
  readonly company_id: string;
  readonly leave_out: string;
  readonly exclusions: string;
  readonly format: string;
  readonly compression: string;
  readonly layout: string;
  readonly formulas: string;
  readonly emails: string;
}

export const fields = [
  ...['kinds', 'events', 'from', 'to', 'zone', 'segment_id', 'user_id', 'company_id', 'leave_out'],
  ...['exclusions', 'format', 'compression', 'layout', 'formulas', 'emails'],
] as readonly (keyof Wish)[];

export type Body = Readonly<Record<string, string | readonly string[] | boolean>>;

/** Ids, addresses and terms are written one a line, or with commas between them. */
export function listOf(text: string): readonly string[] {
  return text
    .split(/[\n,]/)
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** The body of the request; what says nothing is left out. */
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

/** A day of UTC as it is; one of the reader's zone as the instant at which it begins, or at which the next one does. */
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
  return ['sluice export --out export', ...words, ...more].join(' \\\n  ');
}

export function curlOf(body: Body, url: string): string {
  return `curl -H "Authorization: Token $SLUICE_KEY" -H "Content-Type: application/json" \\\n  ${shellWord(url)} \\\n  -d ${shellWord(JSON.stringify(body))}`;
}

/** Values as JSON, which YAML is a superset of. */
export function scheduleOf(body: Body, environment: string, zone: string): string {
  const { from: _from, to: _to, ...rest } = body;
  const lines = Object.entries(rest).map(([name, value]) => `      ${name}: ${JSON.stringify(value)}`);
  return [
    'schedules:',
    '  - name: my-export',
    ...(environment === 'default' ? [] : [`    environment: ${environment}`]),
    '    cron: "0 3 * * *"',
    `    timezone: ${zone}`,
    '    export:',
    '      range: yesterday',
    ...lines,
  ].join('\n');
}
