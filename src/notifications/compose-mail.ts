import type { JobDetail } from '../api/load.ts';
import type { ScheduleRun } from '../api/schedule.ts';
import { type Message, messageId } from './mail-transport.ts';
import type { EventBody } from './record-end.ts';

/*
 * The message about an event: the facts one per line, then links, as plain text. Names come from callers, so every line is
 * kept to one line and cut; nothing that they say reaches a header but the subject, on one line.
 */

/** A file of an export, with a signed link. */
export interface LinkedFile {
  readonly filename: string;
  readonly url: string;
  readonly bytes: number;
  readonly rows: number;
}

/** The files that an export's own recipients may download. */
export interface LinkedFiles {
  readonly files: readonly LinkedFile[];
  /** The manifest of the files. */
  readonly manifest: Omit<LinkedFile, 'rows'> | null;
  readonly expireAt: Date;
}

/** The record of the job that the event holds, as the API renders it. */
type JobData = Partial<JobDetail>;
/** The same of a schedule's run. */
type RunData = Partial<Omit<ScheduleRun, 'items'>> & {
  readonly items?: readonly { readonly links: string | null }[];
};

/** Reasons of rejects, and jobs of a run, that a message lists. */
const shownCodes = 10;
const shownJobs = 10;
const longestLine = 500;
const count = new Intl.NumberFormat('en-US');

/** `linked`: the files of an export, for those whom the export itself names. */
export function composeMail(
  event: EventBody,
  address: string,
  linked: LinkedFiles = { files: [], manifest: null, expireAt: new Date(0) },
): Message {
  const subject = cut(`[${event.environment.name}] ${titleOf(event)}`);
  const facts = describe(event).map(cut);
  const links = linksOf(event).map(cut);
  return {
    to: address,
    subject,
    text: renderText(facts, links, linked),
    messageId: messageId(event.id, address),
  };
}

function titleOf({ type, data }: EventBody): string {
  if (type === 'ping') return 'Test of a notification';
  const [kind = '', outcome = ''] = type.split('.');
  const titles: Readonly<Record<string, string>> = {
    load: 'Load',
    export: 'Export',
    schedule: `Schedule ${(data as RunData).schedule}`,
  };
  return `${titles[kind]} ${outcome.replaceAll('_', ' ')}`;
}

function isRun({ type }: EventBody): boolean {
  return type.startsWith('schedule.');
}

function describe(event: EventBody): string[] {
  const environment = `Environment: ${event.environment.name}`;
  if (event.type === 'ping') return [environment, 'Messages about jobs will come to this address.'];
  const status = `Status: ${event.type.split('.')[1]?.replaceAll('_', ' ')}`;
  const facts = isRun(event) ? describeRun(event.data) : describeJob(event.data as JobData);
  return [environment, status, ...facts, ...describeCounts(event.data as JobData)];
}

function describeJob(data: JobData): string[] {
  const facts = [`Job: ${data.job_id}`, `Type: ${data.type}`, `File: ${data.filename}`];
  if (data.dry_run === true) facts.push('Dry run: nothing was written.');
  facts.push(`Accepted: ${data.start_time}`, `Ended: ${data.end_time}`);
  if (data.failure != null) facts.push(`Reason: ${data.failure.message} [${data.failure.error_code}]`);
  if (data.counts !== undefined) return facts;
  return [
    ...facts,
    `Rows: ${count.format(data.total_rows ?? 0)}`,
    `Bytes: ${count.format(data.file_size ?? 0)}`,
  ];
}

function describeRun(data: RunData): string[] {
  const facts = [`Schedule: ${data.schedule}`, `Due: ${data.due_at}`, `Ended: ${data.ended_at}`];
  if (data.message != null) facts.push(`Reason: ${data.message} [${data.error_code}]`);
  if (data.range_to != null) facts.push(`Range: ${data.range_from ?? 'the beginning'} to ${data.range_to}`);
  if (data.delivered_to != null) facts.push(`Copied to: ${data.delivered_to}`);
  const jobs = data.item_count ?? 0;
  return jobs > shownJobs ? [...facts, `Items: ${jobs}, of which the first are below`] : facts;
}

function describeCounts(data: JobData): string[] {
  const counts = Object.entries(data.counts ?? {});
  const kinds = Object.entries(data.counts_by_kind ?? {}).filter(([, { read = 0 }]) => read > 0);
  const reasons = Object.entries(data.rejects?.by_code ?? {}).slice(0, shownCodes);
  return [
    ...counts.map(([name, rows]) => `Records ${name}: ${count.format(rows)}`),
    ...kinds.map(([kind, { read = 0, inserted = 0, rejected = 0 }]) => {
      const numbers = [read, inserted, rejected].map((rows) => count.format(rows));
      return `Of kind ${kind}: ${numbers[0]} read, ${numbers[1]} inserted, ${numbers[2]} rejected`;
    }),
    ...reasons.map(([code, rows]) => `Rejected as ${code}: ${count.format(rows)}`),
  ];
}

/** Addresses of the job, and of its rejects; of a run, those of its jobs. */
function linksOf(event: EventBody): string[] {
  if (isRun(event)) {
    const { items = [] } = event.data as RunData;
    return items.flatMap(({ links }) => links ?? []).slice(0, shownJobs);
  }
  const { links, rejects } = event.data as JobData;
  return [links, (rejects?.count ?? 0) > 0 ? rejects?.links : undefined].filter((link) => link !== undefined);
}

function renderText(facts: readonly string[], links: readonly string[], linked: LinkedFiles): string {
  const files = listFiles(linked);
  const listed = files.flatMap(({ name, size, url }) => ['', `${name} (${size})`, url]);
  const expiry = files.length === 0 ? [] : ['', expiresAt(linked.expireAt)];
  return `${[...facts, '', ...links, ...listed, ...expiry].join('\n').trimEnd()}\n`;
}

interface ListedFile {
  readonly name: string;
  readonly size: string;
  readonly url: string;
}

/** The manifest last; it has no rows. */
function listFiles({ files, manifest }: LinkedFiles): ListedFile[] {
  const list = ({ filename, url, bytes }: Omit<LinkedFile, 'rows'>, rows: string): ListedFile => ({
    name: oneLine(filename),
    size: `${rows}${count.format(bytes)} bytes`,
    url: oneLine(url),
  });
  const listed = files.map((file) =>
    list(file, `${count.format(file.rows)} ${file.rows === 1 ? 'row' : 'rows'}, `),
  );
  return manifest === null ? listed : [...listed, list(manifest, '')];
}

function expiresAt(at: Date): string {
  return `The links are good until ${at.toISOString()}. Asking for the job again gives new ones.`;
}

/** Without anything that ends a line, or that a terminal or a mail program would obey. */
export function oneLine(text: string): string {
  return text.toWellFormed().replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ');
}

function cut(text: string): string {
  const clean = oneLine(text);
  return clean.length > longestLine ? `${clean.slice(0, longestLine - 1).toWellFormed()}…` : clean;
}
