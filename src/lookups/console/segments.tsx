import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useLocation, useRoute } from 'preact-iso';
import { screenHref, useQuery } from '../../console/client/lib/address.ts';
import { api, mayUse, post } from '../../console/client/lib/api.ts';
import { useAction, useApi } from '../../console/client/lib/data.ts';
import { formatCount, plural, slugOf, visibleText } from '../../console/client/lib/format.ts';
import { profileHref } from '../../console/client/lib/profiles.ts';
import { Button, InputField } from '../../console/client/ui/controls.tsx';
import { ConfirmButton } from '../../console/client/ui/dialog.tsx';
import { type Column, List } from '../../console/client/ui/list.tsx';
import { Empty, Facts, Loaded, Notice, Page, Section } from '../../console/client/ui/page.tsx';
import { EditorForm } from '../../console/client/ui/text-editor.tsx';
import type { DefinitionPreview, SegmentDetail, Segment as SegmentItem, SegmentPage } from '../api.ts';
import { segmentsPath } from './list-segments.ts';

const columns: readonly Column<SegmentItem>[] = [
  ['Segment', ({ title }) => <span class="break">{visibleText(title)}</span>],
  ['Category', ({ category }) => visibleText(category)],
  ['Id', ({ id }) => id, 'num'],
];

export function Segments(): VNode {
  const query = useQuery();
  const segments = useApi<SegmentPage>(segmentsPath(query.get('cursor')));
  const { data: items = [], metadata } = segments.data ?? {};
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
        of={{ ...segments, data: segments.data && page }}
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

export function Segment(): VNode {
  const { id = '' } = useRoute().params;
  const { route } = useLocation();
  const path = `/v1/segments/${encodeURIComponent(id)}`;
  const segment = useApi<SegmentDetail>(path);
  const remove = () => api(path, { method: 'DELETE' }).then(() => route(screenHref('/segments')));
  return (
    <Page
      title={visibleText(segment.data?.title ?? `Segment ${id}`)}
      parent={{ title: 'Segments', href: screenHref('/segments') }}
      actions={
        <>
          {segment.data?.made_by === 'api' ? (
            <ConfirmButton
              label="Delete …"
              scopes="import"
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

export function NewSegment(): VNode {
  return (
    <Page title="New segment" parent={{ title: 'Segments', href: screenHref('/segments') }}>
      <Editor segment={null} />
    </Page>
  );
}

interface EditorProps {
  readonly segment: SegmentDetail | null;
  readonly onSaved?: () => void;
}

const example = { all: [{ property: 'plan', equals: 'pro' }] };

/**
 * Form for a segment, which counts the matching users on demand. A segment of the definitions file
 * cannot be saved in this form.
 */
function Editor({ segment, onSaved }: EditorProps): VNode {
  const { route } = useLocation();
  const [title, setTitle] = useState(segment?.title ?? '');
  const [key, setKey] = useState<string | null>(null);
  const [definition, setDefinition] = useState(JSON.stringify(segment?.definition ?? example, null, 2));
  const [preview, setPreview] = useState<DefinitionPreview | null>(null);
  const shortName = key ?? slugOf(title);
  const counting = useAction(async () => {
    setPreview(null);
    setPreview(await post<DefinitionPreview>('/v1/segments/preview', { definition }));
  });
  const save = async (): Promise<void> => {
    if (segment === null) {
      const { id } = await post<SegmentDetail>('/v1/segments', { key: shortName, title, definition });
      return route(screenHref(`/segments/${id}`));
    }
    const { id, key: _key, made_by: _by, words: _words, ...fields } = segment;
    await api(`/v1/segments/${id}`, { method: 'PUT', body: { ...fields, title, definition } });
    onSaved?.();
  };
  const isOfFile = segment?.made_by === 'file';
  const verb = segment === null ? 'Create the segment' : 'Save';
  return (
    <Section title="Definition">
      <EditorForm
        label="As YAML or JSON"
        hint={
          <>
            Such as <code>property: plan</code> with <code>in: [pro, team]</code>, or <code>event: paid</code>{' '}
            with <code>at_least: 3</code>, in groups <code>all</code>, <code>any</code> and <code>not</code>.
          </>
        }
        text={definition}
        onInput={(text) => {
          setDefinition(text);
          setPreview(null);
        }}
        error={counting.error}
        verb={isOfFile ? null : verb}
        scopes={['import']}
        isComplete={title !== '' && shortName !== ''}
        act={save}
        beside={
          <Button disabled={counting.isRunning} onClick={() => void counting.run()}>
            {counting.isRunning ? 'Counting …' : 'Count the users'}
          </Button>
        }
      >
        {isOfFile ? (
          <Notice>
            The definitions file defines this segment, and wins over the console. Change it here to see who
            would be in it; to keep a change, write it into the file.
          </Notice>
        ) : (
          <div class="row row-fields">
            <InputField label="Title" maxLength={200} value={title} onInput={setTitle} />
            {segment === null ? (
              <InputField label="Short name" maxLength={100} value={shortName} onInput={setKey} />
            ) : null}
          </div>
        )}
      </EditorForm>
      <div class="stack" aria-live="polite">
        {preview === null ? null : <Preview of={preview} />}
      </div>
    </Section>
  );
}

function Preview({ of: { count, user_ids, words } }: { readonly of: DefinitionPreview }): VNode {
  const rest = count - user_ids.length;
  return (
    <>
      <p>
        <strong class="num">{plural(count, 'user')}</strong>
      </p>
      <Words of={words} />
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

function Words({ of }: { readonly of: SegmentDetail['words'] }): VNode {
  if (of.length === 0) return <p class="muted">A newer version of the service wrote this definition.</p>;
  return (
    <ul class="words">
      {of.map(({ depth, text }, at) => (
        <li key={at} class="break" style={{ marginInlineStart: `${Math.min(depth, 5) * 1.25}rem` }}>
          {visibleText(text)}
        </li>
      ))}
    </ul>
  );
}
