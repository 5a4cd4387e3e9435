/* The request of an export: from its form, or once more from the parameters in the ledger. */

import { plural } from '../../console/client/lib/format.ts';
import { exportFormatFacts, isExportFormat } from '../../domain/export.ts';
import type { JobHistory } from '../../http/job.ts';
import type { ExportPreview } from '../api.ts';

export const exportsPath = '/api/v1/analytics/exports';

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

/** Returns how many rows a preview has found, or about how many. */
export function rowsText(
  { rows, is_exact: isExact }: Pick<ExportPreview, 'rows' | 'is_exact'>,
  one = 'row',
  many = `${one}s`,
): string {
  return `${isExact ? '' : 'about '}${plural(rows, one, many)}`;
}

/** Returns the facts of the chosen format; an address may name one that does not exist. */
export function formatOf({ format }: ExportWish) {
  return exportFormatFacts[isExportFormat(format) ? format : 'ndjson'];
}

/** Returns the request that an export answered. */
export function exportOf({ parameters: { request, emails } }: JobHistory): Body {
  const mail: Body = Array.isArray(emails) && emails.length > 0 ? { emails } : {};
  return { ...((request ?? {}) as Body), ...mail };
}
