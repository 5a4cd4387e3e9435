import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useRoute } from 'preact-iso';
import type {
  DefinitionPreview,
  SegmentDetail,
  Segment as SegmentItem,
  SegmentPage,
  SegmentPreview,
} from '../../../api/segment.ts';
import { screenHref, useQuery } from '../lib/address.ts';
import { ApiError, api, type Page as ListPage } from '../lib/api.ts';
import { formatCount, plural, visibleText } from '../lib/format.ts';
import type { DefinitionLine } from '../lib/records.ts';
import { useAction, useData } from '../lib/use-data.ts';
import { Button, CopyAs, CopyButton } from '../ui/button.tsx';
import { Field } from '../ui/field.tsx';
import { Facts, Page, Section } from '../ui/page.tsx';
import { Empty, Loaded, Loading, Problems } from '../ui/problems.tsx';
import { type Column, Pager, Table } from '../ui/table.tsx';
import { profileHref, segmentsPath } from './profiles/profile-record.ts';

const columns: readonly Column<SegmentItem>[] = [
  { title: 'Segment', cell: ({ title }) => <span class="break">{visibleText(title)}</span> },
  { title: 'Category', cell: ({ category }) => visibleText(category) },
  { title: 'Used for', is: 'minor', cell: ({ usage }) => visibleText(usage) },
  { title: 'Status', is: 'minor', cell: ({ status }) => visibleText(status) },
  {
    title: 'Marks',
    is: 'minor',
    cell: ({ is_hidden, is_protected }) => {
      const marks = [is_hidden ? 'hidden' : '', is_protected ? 'protected' : ''].filter(
        (mark) => mark !== '',
      );
      return <span class="faint">{marks.join(', ')}</span>;
    },
  },
  { title: 'Id', is: 'num', cell: ({ id }) => id },
];

function asPage({ data, metadata }: SegmentPage): ListPage<SegmentItem> {
  const { cursor, total_count: total } = metadata;
  return { items: data, total, next: cursor.after === '' ? null : cursor.after };
}

/** Lists the segments of the definitions file. */
export function Segments(): VNode {
  const query = useQuery();
  const path = segmentsPath(query.get('cursor'));
  const { data, error, reload } = useData(path, (signal) => api<SegmentPage>(path, { signal }));
  return (
    <Page title="Segments">
      <Problems error={error} onRetry={reload} />
      <div class="panel">
        {data === undefined ? (
          <Loading />
        ) : (
          <>
            <Table
              caption="Segments, by id"
              columns={columns}
              rows={data.data}
              keyOf={({ id }) => String(id)}
              hrefOf={({ id }) => screenHref(`/segments/${id}`)}
              isSelectable
              empty={
                <Empty title="There are no segments yet">
                  They are written in a definitions file: <code>sluice definitions apply FILE</code>
                </Empty>
              }
            />
            {data.data.length === 0 ? null : <Pager page={asPage(data)} one="segment" />}
          </>
        )}
      </div>
    </Page>
  );
}

/** Shows a segment: its definition in words and as JSON, its members, and the members of another definition. */
export function Segment(): VNode {
  const { id = '' } = useRoute().params;
  const path = `/v1/segments/${encodeURIComponent(id)}`;
  const segment = useData(path, (signal) => api<SegmentDetail>(path, { signal }));
  const members = useData(`${path}/preview`, (signal) => api<SegmentPreview>(`${path}/preview`, { signal }));
  const { data } = segment;
  return (
    <Page
      title={data === undefined ? `Segment ${id}` : visibleText(data.title)}
      parent={{ title: 'Segments', href: screenHref('/segments') }}
      aside={
        members.data === undefined ? null : (
          <span class="muted num">{plural(members.data.count, 'user')}</span>
        )
      }
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
      <Problems error={segment.error} onRetry={segment.reload} />
      {data === undefined ? (
        <Loading />
      ) : (
        <div class="columns">
          <div class="stack">
            <Section title="Who is in it">
              <Words of={data.words} />
            </Section>
            <Changed key={id} definition={data.definition} now={members.data?.count ?? null} />
          </div>
          <div class="stack">
            <Section title="Members">
              <Loaded of={members} rows={4} label="Counting">
                {(preview) => <Ids of={preview} />}
              </Loaded>
            </Section>
            <Details of={data} />
          </div>
        </div>
      )}
    </Page>
  );
}

function Details({ of }: { readonly of: SegmentDetail }): VNode {
  const yaml = { text: definitionYaml(of), hint: 'An item of a definitions file; JSON is YAML too.' };
  return (
    <>
      <Section title="Details">
        <Facts
          of={[
            [
              'Key',
              <span key="key" class="mono">
                {of.key}
              </span>,
            ],
            ['Category', visibleText(of.category)],
            ['Used for', visibleText(of.usage)],
            ['Status', visibleText(of.status)],
            ['Protected', of.is_protected ? 'yes: it cannot be removed by mistake' : null],
            ['Hidden', of.is_hidden ? 'yes: it is not offered in lists' : null],
          ]}
        />
      </Section>
      <Section title="As command or YAML">
        <CopyAs
          forms={[
            { name: 'Command line', text: `sluice segments preview ${of.key}` },
            { name: 'YAML', ...yaml },
          ]}
        />
      </Section>
    </>
  );
}

function definitionYaml({ key, title, definition }: SegmentDetail): string {
  return `segments:\n  - key: ${key}\n    title: ${JSON.stringify(title)}\n    definition: ${JSON.stringify(definition)}`;
}

/** Shows each group of conditions with its members indented. */
function Words({ of }: { readonly of: readonly DefinitionLine[] }): VNode {
  if (of.length === 0) return <p class="muted">A newer version of the service wrote this definition.</p>;
  return (
    <ul class="words">
      {of.map(({ depth, text }, at) => (
        <li key={at} data-depth={Math.min(depth, 10)}>
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
      <ul class="ids">
        {user_ids.map((id) => (
          <li key={id}>
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

/** The definition, which can be changed here and counted. It is stored only in the operator's file. */
function Changed({ definition, now }: { readonly definition: object; readonly now: number | null }): VNode {
  const written = jsonText(definition, '');
  const [text, setText] = useState(written);
  const [found, setFound] = useState<DefinitionPreview | null>(null);
  const preview = useAction(async () => {
    setFound(null);
    const body = { definition: parse(text) };
    setFound(await api<DefinitionPreview>('/v1/segments/preview', { method: 'POST', body }));
  });
  const isChanged = text !== written;
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
          {isChanged ? (
            <Button
              onClick={() => {
                setText(written);
                setFound(null);
              }}
            >
              Reset
            </Button>
          ) : null}
        </div>
        <div class="stack" aria-live="polite">
          {found === null ? null : <Found preview={found} now={now} />}
        </div>
      </form>
    </Section>
  );
}

function Found({
  preview,
  now,
}: {
  readonly preview: DefinitionPreview;
  readonly now: number | null;
}): VNode {
  const { count, words } = preview;
  return (
    <>
      <p class="figure-line">
        <strong class="num">{formatCount(count)}</strong> {count === 1 ? 'user' : 'users'}
        {now === null ? '' : difference(count - now)}
      </p>
      <Words of={words} />
      <Ids of={preview} />
    </>
  );
}

/** Shorter values stand on one line. */
const longestLine = 64;

function jsonText(value: unknown, indent: string): string {
  const line = JSON.stringify(value);
  if (typeof value !== 'object' || value === null || line.length + indent.length <= longestLine) return line;
  const inner = `${indent}  `;
  const isList = Array.isArray(value);
  const items = isList
    ? value.map((item) => jsonText(item, inner))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${jsonText(item, inner)}`);
  const [open, close] = isList ? ['[', ']'] : ['{', '}'];
  return `${open}\n${items.map((item) => inner + item).join(',\n')}\n${indent}${close}`;
}

function difference(more: number): string {
  if (more === 0) return ', as many as now';
  return `, ${formatCount(Math.abs(more))} ${more > 0 ? 'more' : 'fewer'} than now`;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new ApiError(400, [{ error_code: 'invalid_json', message, details: '' }], null);
  }
}
