import { escapeHtml } from '../delivery/escape-html.ts';
import { htmlPage } from '../delivery/html-page.ts';
import { type Message, messageId } from '../delivery/message.ts';
import { oneLine } from '../delivery/one-line.ts';
import { describeRun, linksOfRun, type RunData } from './describe-run.ts';
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
  readonly counts?: Readonly<Record<string, number>> | null;
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
const titles: Readonly<Record<string, string>> = { load: 'Load', export: 'Export' };

/** The message about an event for one address. What callers named is kept to one line, and out of every header. */
export function composeMessage(event: EventBody, address: string): Message {
  const subject = line(`[${event.environment.name}] ${titleOf(event)}`);
  const facts = describe(event).map(line);
  const links = linksOf(event).map(line);
  return {
    to: address,
    subject,
    text: `${[...facts, '', ...links].join('\n').trimEnd()}\n`,
    html: renderHtml(subject, facts, links),
    messageId: messageId(`event-${event.id}`, address),
  };
}

function titleOf(event: EventBody): string {
  const { type } = event;
  if (type === 'ping') return 'Test of a notification';
  const [kind = '', outcome = ''] = type.split('.');
  const what = kind === 'schedule' ? `Schedule ${(event.data as RunData).schedule}` : titles[kind];
  return `${what} ${outcome.replaceAll('_', ' ')}`;
}

function describe(event: EventBody): string[] {
  const environment = `Environment: ${event.environment.name}`;
  if (event.type === 'ping') return [environment, 'Messages about jobs will come to this address.'];
  const status = `Status: ${event.type.split('.')[1]?.replaceAll('_', ' ')}`;
  const counts = describeCounts(event.data as JobData);
  return isRun(event)
    ? [environment, status, ...describeRun(event.data), ...counts]
    : [environment, status, ...describeJob(event.data as JobData), ...counts];
}

function isRun({ type }: EventBody): boolean {
  return type.startsWith('schedule.');
}

function describeJob(data: JobData): string[] {
  const facts = [`Job: ${data.job_id}`, `Type: ${data.type}`, `File: ${data.filename}`];
  if (data.dry_run === true) facts.push('Dry run: nothing was written.');
  facts.push(`Accepted: ${data.start_time}`, `Ended: ${data.end_time}`);
  if (data.failure != null) facts.push(`Reason: ${data.failure.message} [${data.failure.error_code}]`);
  if (data.counts === undefined) facts.push(`Rows: ${count.format(data.total_rows ?? 0)}`);
  return facts;
}

function describeCounts(data: JobData): string[] {
  const facts: string[] = [];
  for (const [name, rows] of Object.entries(data.counts ?? {}))
    facts.push(`Records ${name}: ${count.format(rows)}`);
  const reasons = Object.entries(data.rejects?.by_code ?? {});
  for (const [code, rows] of reasons.slice(0, shownCodes))
    facts.push(`Rejected as ${code}: ${count.format(rows)}`);
  return facts;
}

function linksOf(event: EventBody): string[] {
  if (isRun(event)) return linksOfRun(event.data);
  const { links, rejects } = event.data as JobData;
  return [links, (rejects?.count ?? 0) > 0 ? rejects?.links : undefined].filter((link) => link !== undefined);
}

function renderHtml(title: string, facts: readonly string[], links: readonly string[]): string {
  return htmlPage(title, [
    ...facts.map((fact) => `<p>${escapeHtml(fact)}</p>`),
    ...links.map((link) => `<p><a href="${escapeHtml(link)}">${escapeHtml(link)}</a></p>`),
  ]);
}

const count = new Intl.NumberFormat('en-US');

function line(text: string): string {
  const clean = oneLine(text);
  return clean.length > longestLine ? `${clean.slice(0, longestLine - 1).toWellFormed()}…` : clean;
}
