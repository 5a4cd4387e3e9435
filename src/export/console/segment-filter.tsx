import type { VNode } from 'preact';
import { useData } from '../../console/client/lib/data.ts';
import { formatCount, visibleText } from '../../console/client/lib/format.ts';
import type { ExportFilter, ExportFilterProps } from '../../console/client/part.ts';
import { SelectField } from '../../console/client/ui/controls.tsx';
import { Problems } from '../../console/client/ui/page.tsx';
import { loadSegments } from '../../lookups/console/list-segments.ts';

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
