import { formatBytes, plural, summaries } from '../../base/wording.ts';
import type { ExportWarning } from '../../domain/export.ts';
import type { RefusalReason } from '../../domain/job.ts';
import type { Run } from '../../http/run.ts';
import type { JobDetail as LoadDetail } from '../../load/api.ts';
import type { Format } from './api.ts';
import type { EventBody } from './record.ts';

/*
 * Describes an event for people: the job and its outcome, the number of records, the reason, and a
 * link. Callers choose names and messages, so every text is limited to one line.
 */

/** A job as the API renders it. */
export type JobData = Partial<Omit<LoadDetail, 'type' | 'counts' | 'rejects'>> & {
  readonly type?: string;
  /** `null` only in events of an earlier version. */
  readonly counts?: Run['counts'] | null;
  readonly rejects?: Run['rejects'];
  readonly warnings?: readonly ExportWarning[];
};

export interface RefusedFile extends Partial<Pick<Run, 'sources'>> {
  readonly file: string;
  readonly reasons: readonly RefusalReason[];
  /** Only in events of an earlier version. */
  readonly size?: number;
}

export interface RunData extends Partial<Pick<Run, 'phases' | 'failure'>>, Pick<JobData, 'counts'> {
  readonly schedule?: string;
  readonly due_at?: string;
  readonly range_from?: string | null;
  readonly range_to?: string | null;
  readonly delivered_to?: string | null;
  readonly item_count?: number;
  readonly items?: readonly { readonly job_id: string | null; readonly links: string | null }[];
  /** This member and the next two exist only in events of an earlier version. */
  readonly ended_at?: string | null;
  readonly error_code?: string | null;
  readonly message?: string | null;
}

export interface Brief {
  readonly what: string;
  readonly count: string | null;
  readonly reason: string | null;
  readonly link: string | null;
}

const longest = { what: 120, count: 60, reason: 115 };
const shownCodes = 3;

/** Returns at most 300 characters, not counting the link, to fit the screen of a phone. */
export function briefOf(event: EventBody): Brief {
  const { name, end, count, reason } = textsOf(event);
  const what = clip(`[${event.environment.name}] ${name}`, longest.what - end.length - 1);
  return {
    what: end === '' ? what : `${what} ${end}`,
    count: count && clip(count, longest.count),
    reason: reason && clip(reason, longest.reason),
    link: linksOf(event)[0] ?? null,
  };
}

interface Texts extends Pick<Brief, 'count' | 'reason'> {
  readonly name: string;
  readonly end: string;
}

function textsOf(event: EventBody): Texts {
  if (event.type === 'ping') {
    const reason = 'Messages about jobs will come here';
    return { name: 'Test of a notification', end: '', count: null, reason };
  }
  const file = refusedFileOf(event);
  if (file !== null) {
    const [first] = file.reasons;
    const reason = first === undefined ? null : textOfRefusal(first);
    return {
      name: file.file,
      end: 'was not loaded',
      count: formatBytes(file.sources?.[0]?.bytes ?? file.size ?? 0),
      reason,
    };
  }
  const name = nameOf(event);
  const end = outcomeOf(event).replaceAll('_', ' ');
  if (isRun(event)) {
    const run = event.data as RunData;
    return {
      name,
      end,
      count: plural(run.item_count ?? 0, 'item'),
      reason: endOf(run).failure?.message ?? null,
    };
  }
  const job = event.data as JobData;
  return { name, end, count: countOf(job), reason: reasonOf(job) };
}

function countOf({ counts, rejects, total_rows: rows = 0 }: JobData): string {
  if (counts == null || !('read' in counts)) return plural(Number(rows), 'row');
  return `${plural(counts.read, 'record')} read, ${plural(rejects?.count ?? 0, 'refused', 'refused')}`;
}

function reasonOf(job: JobData): string | null {
  if (job.failure != null) return job.failure.message;
  if (job.held != null) return job.held.reasons.map(({ message }) => message).join('; ');
  const codes = Object.entries(job.rejects?.by_code ?? {}).slice(0, shownCodes);
  if (codes.length > 0) return codes.map(([code, records]) => `${code} ${records}`).join(', ');
  const [summary] = summaries(job).map(([, text]) => text);
  return summary ?? job.warnings?.[0]?.message ?? null;
}

export function nameOf(event: EventBody): string {
  if (isRun(event)) return `Schedule ${(event.data as RunData).schedule}`;
  return (event.data as JobData).filename ?? event.type.split('.')[0] ?? '';
}

export function outcomeOf({ type }: EventBody): string {
  return type.split('.')[1] ?? '';
}

export function refusedFileOf({ type, data }: EventBody): RefusedFile | null {
  return type === 'file.refused' ? (data as unknown as RefusedFile) : null;
}

export function textOfRefusal({ message, details }: RefusalReason): string {
  return details === '' ? message : `${message}: ${details}`;
}

export function isRun({ type }: EventBody): boolean {
  return type.startsWith('schedule.');
}

/** Handles events of an earlier version, which have other members. */
export function endOf({ phases, failure, ended_at, error_code, message }: RunData) {
  const earlier = message == null ? null : { message, error_code: error_code ?? '' };
  return { endedAt: phases?.at(-1)?.at ?? ended_at ?? null, failure: failure ?? earlier };
}

export const shownJobs = 10;

export function linksOf(event: EventBody): string[] {
  const { items = [] } = event.data as RunData;
  const jobs = isRun(event) ? items : [event.data as JobData];
  return jobs.flatMap(({ job_id, links }) => pageOf(job_id, links)).slice(0, shownJobs);
}

function pageOf(jobId: string | null | undefined, links: string | null | undefined): string[] {
  if (jobId == null || links == null) return [];
  return [links.replace(/\/(?:api\/)?v1\/[^?]*$/, `/console/jobs/${jobId}`)];
}

/** Replaces control and format characters, which could harm terminals and mail clients. */
export function oneLine(text: string): string {
  return text.toWellFormed().replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ');
}

export function clip(text: string, max: number): string {
  const clean = oneLine(text);
  return clean.length > max ? `${clean.slice(0, max - 1).toWellFormed()}…` : clean;
}

export const formats: Readonly<Record<Format, (event: string) => string>> = {
  standard: (event) => event,
  slack: (event) => JSON.stringify(slackMessage(briefOf(JSON.parse(event) as EventBody))),
  teams: (event) => JSON.stringify(teamsMessage(briefOf(JSON.parse(event) as EventBody))),
};

const linkTitle = 'Open the job';

/**
 * Slack shows `text` on phones, and `blocks` in the channel. Even in plain text, Slack reads `<…>`
 * as a mention or a link.
 */
function slackMessage({ link, ...brief }: Brief) {
  const text = escapeForSlack(linesOf(brief).join('\n'));
  const section = (content: object) => ({ type: 'section', text: content });
  const linkText = { type: 'mrkdwn', text: `<${escapeForSlack(link ?? '')}|${linkTitle}>` };
  return {
    text,
    mrkdwn: false,
    blocks: [
      section({ type: 'plain_text', text, emoji: false }),
      ...(link === null ? [] : [section(linkText)]),
    ],
  };
}

function escapeForSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Text runs of an Adaptive Card have no markup, unlike text blocks. */
function teamsMessage({ link, ...brief }: Brief) {
  const lines = linesOf(brief).map((line, at) => ({
    type: 'RichTextBlock',
    inlines: [{ type: 'TextRun', text: escapeForTeams(line), ...(at === 0 && { weight: 'Bolder' }) }],
  }));
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body: lines,
          ...(link !== null && { actions: [{ type: 'Action.OpenUrl', title: linkTitle, url: link }] }),
        },
      },
    ],
  };
}

/** Breaks up functions such as `{{DATE(…)}}`, which a card would otherwise evaluate in any text. */
function escapeForTeams(text: string): string {
  return text.replaceAll(/\{(?=\{)/g, '{ ');
}

function linesOf({ what, count, reason }: Omit<Brief, 'link'>): readonly string[] {
  return [what, count, reason].filter((line) => line !== null);
}
