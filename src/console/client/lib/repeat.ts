/* A job once more, now or by the clock: from the form of an export or the parameters in the ledger. */
import type { JobHistory } from '../../../api/job.ts';
import { exportFormatFacts, isExportFormat } from '../../../domain/export.ts';
import { isLoad, type JobDetail } from './jobs.ts';

/** The fields of the form of an export, by their names in the address. */
export const exportFields = [
  ...(['kinds', 'events', 'from', 'to', 'segment_id', 'user_id', 'company_id', 'leave_out'] as const),
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
    from: wish.from,
    to: wish.to,
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

/** Returns the request that an export answered. */
export function exportOf({ parameters }: JobHistory): Body {
  return requestOf(parameters);
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
