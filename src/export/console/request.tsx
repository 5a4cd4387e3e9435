/*
 * Converts the form to an export request, and an earlier export back to the request that created
 * it.
 */

import { parts } from 'sluice:capabilities';
import type { VNode } from 'preact';
import { useData } from '../../console/client/lib/data.ts';
import { formatCount, plural, visibleText } from '../../console/client/lib/format.ts';
import type { ExportFilter, ExportFilterProps } from '../../console/client/part.ts';
import { SelectField } from '../../console/client/ui/controls.tsx';
import { Problems } from '../../console/client/ui/page.tsx';
import { exportFormatFacts, isExportFormat } from '../../domain/export.ts';
import { loadSegments } from '../../lookups/console/list-segments.ts';
import type { ExportJobDetail, ExportPreview } from '../api.ts';

export const segmentFilter: ExportFilter = { label: 'Segment', field: 'segment_id', Control: Segment };

function Segment({ label, value, onChange }: ExportFilterProps): VNode {
  const { data, error, reload } = useData('segments', loadSegments);
  const options = data?.data.map(({ id, title }) => [String(id), visibleText(title)] as const) ?? [];
  return (
    <>
      <Problems error={error} onRetry={reload} />
      <SelectField
        label={label}
        hint={data?.isCut === true ? `Offers the first ${formatCount(options.length)}.` : undefined}
        value={value}
        options={[['', 'All users'], ...options]}
        onChange={onChange}
      />
    </>
  );
}

export const exportsPath = '/api/v1/analytics/exports';

const coreFields = [
  'kinds',
  'events',
  'from',
  'to',
  'user_id',
  'company_id',
  'leave_out',
  'since',
  'removed',
  'exclusions',
  'format',
  'compression',
  'layout',
  'formulas',
  'emails',
] as const;

export const optionFilters = [segmentFilter, ...parts.flatMap(({ exportFilter = [] }) => exportFilter)];

const optionFields = optionFilters.map(({ field }) => field);

/** Names of the form's fields and of the parameters in the page address. */
export const exportFields: readonly string[] = [...coreFields, ...optionFields];

export type CoreField = (typeof coreFields)[number];

/** A field without a value is ''. */
export type ExportWish = Readonly<Record<CoreField, string> & Partial<Record<string, string>>>;
type Body = Readonly<Record<string, string | readonly string[] | boolean | object>>;

export function listOf(text: string): readonly string[] {
  return text
    .split(/[\n,]/)
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

export function bodyOf(wish: ExportWish): Body {
  const excluded = [...listOf(wish.leave_out).map((name) => `property:${name}`), ...listOf(wish.exclusions)];
  const fields = {
    from: wish.from,
    to: wish.to,
    since: wish.since,
    event_type: [...listOf(wish.kinds), ...listOf(wish.events)],
    user_id: listOf(wish.user_id),
    company_id: listOf(wish.company_id),
    ...Object.fromEntries(optionFields.map((field) => [field, wish[field] ?? ''])),
    exclusions: excluded.join(','),
    layout: wish.layout,
    format: wish.format,
    compression: formatOf(wish).isPackedInside ? '' : wish.compression,
    emails: listOf(wish.emails),
  };
  const filled = Object.entries(fields).filter(([, value]) => value.length > 0);
  return {
    ...Object.fromEntries(filled),
    ...(wish.removed === 'yes' && wish.since !== '' && { include_removed: true }),
    ...(wish.formulas === 'keep' && { escape_formulas: false }),
  };
}

export function rowsText(
  { rows, is_exact: isExact }: Pick<ExportPreview, 'rows' | 'is_exact'>,
  one = 'row',
  many = `${one}s`,
): string {
  return `${isExact ? '' : 'about '}${plural(rows, one, many)}`;
}

/** An unknown format in the page address counts as NDJSON. */
export function formatOf({ format }: ExportWish) {
  return exportFormatFacts[isExportFormat(format) ? format : 'ndjson'];
}

/** The body is incomplete if the options in the job record were cut. */
export function exportOf({ options, emails }: Pick<ExportJobDetail, 'options' | 'emails'>): Body {
  const { retention_days: _, ...request } = options;
  return { ...(request as Body), ...(emails.length > 0 && { emails }) };
}
