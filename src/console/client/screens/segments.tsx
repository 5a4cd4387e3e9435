import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import type {
  DefinitionPreview,
  SegmentDetail,
  Segment as SegmentItem,
  SegmentPage,
  SegmentPreview,
} from '../../../api/definition.ts';
import { ApiError, post, screenHref, useAction, useApi, useQuery } from '../lib/api.ts';
import { formatCount, plural, visibleText } from '../lib/format.ts';
import { Button, CopyButton, Field } from '../ui/controls.tsx';
import { Empty, Facts, Loaded, Page, Problems, Section } from '../ui/page.tsx';
import { type Column, List } from '../ui/table.tsx';
import { profileHref, segmentsPath } from './profiles.tsx';

const columns: readonly Column<SegmentItem>[] = [
  ['Segment', ({ title }) => <span class="break">{visibleText(title)}</span>],
  ['Category', ({ category }) => visibleText(category)],
  ['Used for', ({ usage }) => visibleText(usage), 'minor'],
  ['Status', ({ status }) => visibleText(status), 'minor'],
  [
    'Marks',
    ({ is_hidden, is_protected }) => (
      <span class="faint">
        {[is_hidden && 'hidden', is_protected && 'protected'].filter(Boolean).join(', ')}
      </span>
    ),
    'minor',
  ],
  ['Id', ({ id }) => id, 'num'],
];

/** Lists the segments of the definitions file. */
export function Segments(): VNode {
  const query = useQuery();
  const found = useApi<SegmentPage>(segmentsPath(query.get('cursor')));
  const { data: items = [], metadata } = found.data ?? {};
  const page = { items, total: metadata?.total_count ?? 0, next: metadata?.cursor.after || null };
  return (
    <Page title="Segments">
      <List
        of={{ ...found, data: found.data && page }}
        one="segment"
        caption="Segments, by id"
        columns={columns}
        keyOf={({ id }) => String(id)}
        hrefOf={({ id }) => screenHref(`/segments/${id}`)}
        empty={
          <Empty title="There are no segments yet">
            They are written in a definitions file: <code>sluice definitions apply FILE</code>
          </Empty>
        }
      />
    </Page>
  );
}

/** Shows a segment: its definition in words and as JSON, its members, and the members of another definition. */
export function Segment(): VNode {
  const { id = '' } = useRoute().params;
  const path = `/v1/segments/${encodeURIComponent(id)}`;
  const segment = useApi<SegmentDetail>(path);
  const members = useApi<SegmentPreview>(`${path}/preview`);
  const count = members.data?.count ?? null;
  return (
    <Page
      title={visibleText(segment.data?.title ?? `Segment ${id}`)}
      parent={{ title: 'Segments', href: screenHref('/segments') }}
      aside={count === null ? null : <span class="muted num">{plural(count, 'user')}</span>}
      actions={
        <>
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
            <div class="stack">
              <Section title="Who is in it">
                <Words of={data.words} />
              </Section>
              <Changed key={id} definition={data.definition} now={count} />
            </div>
            <div class="stack">
              <Section title="Members">
                <Loaded of={members} rows={4} label="Counting">
                  {(preview) => <Ids of={preview} />}
                </Loaded>
              </Section>
              <Section title="Details">
                <Facts
                  of={[
                    ['Key', <code key="key">{data.key}</code>],
                    ['Category', visibleText(data.category)],
                    ['Used for', visibleText(data.usage)],
                    ['Status', visibleText(data.status)],
                    ['Protected', data.is_protected ? 'yes: it cannot be removed by mistake' : null],
                    ['Hidden', data.is_hidden ? 'yes: it is not offered in lists' : null],
                  ]}
                />
              </Section>
            </div>
          </div>
        )}
      </Loaded>
    </Page>
  );
}

/** Shows each group of conditions with its members indented. */
function Words({ of }: { readonly of: SegmentDetail['words'] }): VNode {
  if (of.length === 0) return <p class="muted">A newer version of the service wrote this definition.</p>;
  return (
    <ul class="words">
      {of.map(({ depth, text }, at) => (
        <li key={at} style={{ marginInlineStart: `${Math.min(depth, 5) * 1.25}rem` }}>
          {visibleText(text)}
        </li>
      ))}
    </ul>
  );
}

function Ids({ of: { count, user_ids } }: { readonly of: Omit<SegmentPreview, 'id'> }): VNode {
  const rest = count - user_ids.length;
  if (count === 0) return <p class="muted">No user is in it now.</p>;
  return (
    <>
      <ul class="row">
        {user_ids.map((id) => (
          <li key={id} class="break">
            <a href={profileHref('users', id)}>{visibleText(id)}</a>
          </li>
        ))}
      </ul>
      {rest > 0 ? (
        <p class="faint">
          The first {user_ids.length} by id; {formatCount(rest)} more.
        </p>
      ) : null}
    </>
  );
}

interface ChangedProps {
  readonly definition: object;
  /** The number of members; `null` until they are counted. */
  readonly now: number | null;
}

/** The definition, which can be changed here and counted. It is stored only in the operator's file. */
function Changed({ definition, now }: ChangedProps): VNode {
  const [text, setText] = useState(JSON.stringify(definition, null, 2));
  const [found, setFound] = useState<DefinitionPreview | null>(null);
  const preview = useAction(async () => {
    setFound(null);
    setFound(await post<DefinitionPreview>('/v1/segments/preview', { definition: parse(text) }));
  });
  return (
    <Section title="Definition" aside={<CopyButton text={text} />}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void preview.run();
        }}
      >
        <Field
          label="As JSON"
          hint="Change it and preview who would be in it. Nothing is stored: segments are kept in the definitions file."
        >
          <textarea
            class="mono"
            rows={Math.min(24, Math.max(6, text.split('\n').length + 1))}
            spellcheck={false}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </Field>
        <Problems error={preview.error} />
        <div class="row">
          <Button type="submit" look="main" disabled={preview.isRunning}>
            {preview.isRunning ? 'Counting …' : 'Preview'}
          </Button>
        </div>
        <div class="stack" aria-live="polite">
          {found === null ? null : (
            <>
              <p>
                <strong class="num">{plural(found.count, 'user')}</strong>
                {now === null ? '' : difference(found.count - now)}
              </p>
              <Words of={found.words} />
              <Ids of={found} />
            </>
          )}
        </div>
      </form>
    </Section>
  );
}

function difference(more: number): string {
  if (more === 0) return ', as many as now';
  return `, ${formatCount(Math.abs(more))} ${more > 0 ? 'more' : 'fewer'} than now`;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ApiError(400, error instanceof Error ? error.message : String(error));
  }
}
