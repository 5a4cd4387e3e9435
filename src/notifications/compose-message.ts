import { escapeHtml } from '../delivery/escape-html.ts';
import { type Message, messageId } from '../delivery/message.ts';
import { oneLine } from '../delivery/one-line.ts';
import type { EventBody } from './render-event.ts';

/** What is read of a job's record; the whole is in the event, as the API renders it. */
interface JobData {
  readonly job_id?: string;
  readonly type?: string;
  readonly filename?: string;
  readonly start_time?: string;
  readonly end_time?: string | null;
  readonly total_rows?: number;
  readonly links?: string;
  readonly dry_run?: boolean;
  readonly counts?: Readonly<Record<string, number>>;
  readonly rejects?: {
    readonly count: number;
    readonly by_code: Readonly<Record<string, number>>;
    readonly links: string;
  };
  readonly failure?: { readonly error_code: string; readonly message: string } | null;
}

/** Reasons of rejects that a message lists; there are no more than a score. */
const shownCodes = 10;
const longestLine = 500;

/** The message about an event for one address. What callers named is kept to one line, and out of every header. */
export function composeMessage(event: EventBody, address: string): Message {
  const data = event.data as JobData;
  const subject = line(`[${event.environment.name}] ${titleOf(event)}`);
  const facts = describe(event, data).map(line);
  const links = [
    data.links,
    data.rejects !== undefined && data.rejects.count > 0 ? data.rejects.links : undefined,
  ]
    .filter((link) => link !== undefined)
    .map(line);
  return {
    to: address,
    subject,
    text: `${[...facts, '', ...links].join('\n').trimEnd()}\n`,
    html: renderHtml(subject, facts, links),
    messageId: messageId(`event-${event.id}`, address),
  };
}

function titleOf({ type }: EventBody): string {
  if (type === 'ping') return 'Test of a notification';
  const [kind = '', outcome = ''] = type.split('.');
  return `${kind === 'export' ? 'Export' : 'Load'} ${outcome.replaceAll('_', ' ')}`;
}

function describe(event: EventBody, data: JobData): string[] {
  const facts = [`Environment: ${event.environment.name}`];
  if (event.type === 'ping') return [...facts, 'Messages about jobs will come to this address.'];
  facts.push(
    `Job: ${data.job_id}`,
    `Type: ${data.type}`,
    `Status: ${event.type.split('.')[1]?.replaceAll('_', ' ')}`,
  );
  facts.push(`File: ${data.filename}`);
  if (data.dry_run === true) facts.push('Dry run: nothing was written.');
  facts.push(`Accepted: ${data.start_time}`, `Ended: ${data.end_time}`);
  if (data.failure != null) facts.push(`Reason: ${data.failure.message} [${data.failure.error_code}]`);
  if (data.counts === undefined) facts.push(`Rows: ${count.format(data.total_rows ?? 0)}`);
  for (const [name, rows] of Object.entries(data.counts ?? {}))
    facts.push(`Records ${name}: ${count.format(rows)}`);
  const reasons = Object.entries(data.rejects?.by_code ?? {});
  for (const [code, rows] of reasons.slice(0, shownCodes))
    facts.push(`Rejected as ${code}: ${count.format(rows)}`);
  return facts;
}

function renderHtml(title: string, facts: readonly string[], links: readonly string[]): string {
  const body = [
    ...facts.map((fact) => `<p>${escapeHtml(fact)}</p>`),
    ...links.map((link) => `<p><a href="${escapeHtml(link)}">${escapeHtml(link)}</a></p>`),
  ].join('\n');
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(title)}</title></head>
<body>
${body}
</body></html>
`;
}

const count = new Intl.NumberFormat('en-US');

function line(text: string): string {
  const clean = oneLine(text);
  return clean.length > longestLine ? `${clean.slice(0, longestLine - 1).toWellFormed()}…` : clean;
}
