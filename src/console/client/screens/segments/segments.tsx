import type { VNode } from 'preact';
import { useLocation, useRoute } from 'preact-iso';
import type { SegmentDetail, Segment as SegmentItem, SegmentPage } from '../../../../lookups/api.ts';
import { screenHref, useQuery } from '../../lib/address.ts';
import { api, mayUse } from '../../lib/api.ts';
import { useApi } from '../../lib/data.ts';
import { visibleText } from '../../lib/format.ts';
import { ConfirmButton } from '../../ui/dialog.tsx';
import { type Column, List } from '../../ui/list.tsx';
import { Empty, Facts, Loaded, Page, Section } from '../../ui/page.tsx';
import { segmentsPath } from '../profiles.tsx';
import { Editor, Words } from './editor.tsx';

const columns: readonly Column<SegmentItem>[] = [
  ['Segment', ({ title }) => <span class="break">{visibleText(title)}</span>],
  ['Category', ({ category }) => visibleText(category)],
  ['Id', ({ id }) => id, 'num'],
];

/** Lists the segments of the definitions file and of the API. */
export function Segments(): VNode {
  const query = useQuery();
  const found = useApi<SegmentPage>(segmentsPath(query.get('cursor')));
  const { data: items = [], metadata } = found.data ?? {};
  const page = { items, total: metadata?.total_count ?? 0, next: metadata?.cursor.after || null };
  return (
    <Page
      title="Segments"
      actions={
        mayUse('import') ? (
          <a class="button button-main" href={screenHref('/segments/new')}>
            New segment
          </a>
        ) : null
      }
    >
      <List
        of={{ ...found, data: found.data && page }}
        one="segment"
        caption="Segments, by id"
        columns={columns}
        keyOf={({ id }) => String(id)}
        hrefOf={({ id }) => screenHref(`/segments/${id}`)}
        empty={
          <Empty title="There are no segments yet">
            Create one here, or write them in a definitions file: <code>sluice definitions apply FILE</code>
          </Empty>
        }
      />
    </Page>
  );
}

/** Shows a segment: its definition, which can be changed and counted. */
export function Segment(): VNode {
  const { id = '' } = useRoute().params;
  const { route } = useLocation();
  const path = `/v1/segments/${encodeURIComponent(id)}`;
  const segment = useApi<SegmentDetail>(path);
  const remove = async (): Promise<void> => {
    await api(path, { method: 'DELETE' });
    route(screenHref('/segments'));
  };
  return (
    <Page
      title={visibleText(segment.data?.title ?? `Segment ${id}`)}
      parent={{ title: 'Segments', href: screenHref('/segments') }}
      actions={
        <>
          {segment.data?.made_by === 'api' ? (
            <ConfirmButton
              label="Delete …"
              needs="import"
              title="Delete the segment"
              sentence="The segment is deleted. Its users stay."
              verb="Delete it"
              isDestructive
              act={remove}
            />
          ) : null}
          <a class="button" href={screenHref('/people', { segment_id: id })}>
            All its users
          </a>
          <a class="button" href={screenHref('/export', { segment_id: id })}>
            Export them
          </a>
        </>
      }
    >
      <Loaded of={segment}>
        {(data) => (
          <div class="columns">
            <Section title="Who is in it">
              <Words of={data.words} />
              <Facts
                of={[
                  ['Short name', <code key="key">{data.key}</code>],
                  ['Defined by', data.made_by === 'file' ? 'the definitions file' : 'the API or the console'],
                  ['Category', visibleText(data.category)],
                ]}
              />
            </Section>
            {data.words.length === 0 ? null : (
              <Editor key={data.id} segment={data} onSaved={segment.reload} />
            )}
          </div>
        )}
      </Loaded>
    </Page>
  );
}
