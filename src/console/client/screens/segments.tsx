import type { VNode } from 'preact';
import { api, type Page as ListPage } from '../lib/api.ts';
import { visibleText } from '../lib/format.ts';
import { screenHref } from '../lib/place.ts';
import { useData } from '../lib/use-data.ts';
import { useQuery } from '../lib/use-query.ts';
import { Page } from '../ui/page.tsx';
import { Pager } from '../ui/pager.tsx';
import { Empty, Loading, Problems } from '../ui/problems.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { type SegmentItem, type SegmentPage, segmentsPath } from './profile-record.ts';

const columns: readonly Column<SegmentItem>[] = [
  { id: 'title', title: 'Segment', cell: ({ title }) => <span class="break">{visibleText(title)}</span> },
  { id: 'category', title: 'Category', cell: ({ category }) => visibleText(category) },
  { id: 'usage', title: 'Used for', isMinor: true, cell: ({ usage }) => visibleText(usage) },
  { id: 'status', title: 'Status', isMinor: true, cell: ({ status }) => visibleText(status) },
  {
    id: 'marks',
    title: 'Marks',
    isMinor: true,
    cell: ({ is_hidden, is_protected }) => {
      const marks = [is_hidden ? 'hidden' : '', is_protected ? 'protected' : ''].filter(
        (mark) => mark !== '',
      );
      return <span class="faint">{marks.join(', ')}</span>;
    },
  },
  { id: 'id', title: 'Id', isNumber: true, cell: ({ id }) => id },
];

function asPage({ data, metadata }: SegmentPage): ListPage<SegmentItem> {
  const { cursor, total_count: total } = metadata;
  return { items: data, total, next: cursor.after === '' ? null : cursor.after };
}

/** What the operator defined in the definitions file. */
export function Segments(): VNode {
  const query = useQuery();
  const path = segmentsPath(query.get('cursor'));
  const list = useData(path, (signal) => api<SegmentPage>(path, { signal }));
  return (
    <Page title="Segments">
      <Problems error={list.error} onRetry={list.reload} />
      <div class="panel">
        {list.data === undefined ? (
          <Loading rows={6} />
        ) : list.data.data.length === 0 ? (
          <Empty title="There are no segments yet">
            They are written in a definitions file: <code>sluice definitions apply FILE</code>
          </Empty>
        ) : (
          <>
            <Table
              caption="Segments, by id"
              columns={columns}
              rows={list.data.data}
              keyOf={({ id }) => String(id)}
              hrefOf={({ id }) => screenHref(`/segments/${id}`)}
              selected={query.get('row')}
              onSelect={(row) => query.set({ row }, { replace: true })}
            />
            <Pager
              page={asPage(list.data)}
              noun={list.data.metadata.total_count === 1 ? 'segment' : 'segments'}
            />
          </>
        )}
      </div>
    </Page>
  );
}
