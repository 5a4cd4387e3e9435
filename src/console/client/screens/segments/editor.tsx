import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { DefinitionPreview, SegmentDetail, SegmentPreview } from '../../../../api/definition.ts';
import { api, post, screenHref, useData, useSubmit } from '../../lib/api.ts';
import { formatCount, plural, visibleText } from '../../lib/format.ts';
import { Button, CopyButton, InputField } from '../../ui/controls.tsx';
import { Notice, Page, Problems, Section } from '../../ui/page.tsx';
import { profileHref } from '../profiles.tsx';
import { Builder } from './builder.tsx';
import { isComplete, type Node, newCondition } from './condition.ts';

/** Makes a segment. */
export function NewSegment(): VNode {
  return (
    <Page title="New segment" parent={{ title: 'Segments', href: screenHref('/segments') }}>
      <Editor segment={null} now={null} />
    </Page>
  );
}

interface EditorProps {
  /** `null` makes a new one. */
  readonly segment: SegmentDetail | null;
  /** The number of members; `null` until they are counted. */
  readonly now: number | null;
  readonly onSaved?: () => void;
}

/** The definition, counted while it is changed. That of the definitions file can be tried out, and not saved. */
export function Editor({ segment, now, onSaved }: EditorProps): VNode {
  const { route } = useLocation();
  const [title, setTitle] = useState(segment?.title ?? '');
  const [key, setKey] = useState<string | null>(null);
  const [definition, setDefinition] = useState((segment?.definition ?? newCondition.property) as Node);
  const named = key ?? keyOf(title);
  const saving = useSubmit(async () => {
    if (segment === null) {
      const made = await post<SegmentDetail>('/v1/segments', { key: named, title, definition });
      return route(screenHref(`/segments/${made.id}`));
    }
    const { id, key: _key, made_by: _by, words: _words, ...fields } = segment;
    await api(`/v1/segments/${id}`, { method: 'PUT', body: { ...fields, title, definition } });
    onSaved?.();
  });
  const isOfFile = segment?.made_by === 'file';
  const isChanged = JSON.stringify(definition) !== JSON.stringify(segment?.definition);
  return (
    <Section
      title="Definition"
      aside={<CopyButton label="Copy as JSON" text={JSON.stringify(definition, null, 2)} />}
    >
      <form class="stack" onSubmit={saving.onSubmit}>
        {isOfFile ? (
          <Notice>
            The definitions file defines this segment, and wins over the console. Change it here to see who
            would be in it; to keep a change, write it into the file.
          </Notice>
        ) : (
          <div class="row row-fields">
            <InputField label="Title" maxLength={200} value={title} onInput={setTitle} />
            {segment === null ? (
              <InputField label="Short name" maxLength={100} value={named} onInput={setKey} />
            ) : null}
          </div>
        )}
        <Builder of={definition} onChange={setDefinition} />
        {isChanged ? <Counted definition={definition} now={now} /> : null}
        <Problems error={saving.error} />
        {isOfFile ? null : (
          <div class="row">
            <Button
              type="submit"
              look="main"
              needs="import"
              disabled={saving.isRunning || title === '' || named === '' || !isComplete(definition)}
            >
              {segment === null ? 'Create the segment' : 'Save'}
            </Button>
          </div>
        )}
      </form>
    </Section>
  );
}

/** Returns a key that the definitions file takes; '' if the title has no letter for one. */
function keyOf(title: string): string {
  const plain = title.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
  return plain
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
    .slice(0, 100);
}

/** The pause in typing after which is counted. */
const pauseMs = 300;

/** Shows how many users the definition matches now. A count under way ends when the definition changes. */
function Counted({ definition, now }: { readonly definition: Node; readonly now: number | null }): VNode {
  const key = isComplete(definition) ? JSON.stringify(definition) : null;
  const { data, error, isLoading, reload } = useData(key, async (signal) => {
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    signal.throwIfAborted();
    return post<DefinitionPreview>('/v1/segments/preview', { definition }, signal);
  });
  return (
    <div class="stack" aria-live="polite" aria-busy={isLoading}>
      {key === null ? <p class="muted">Fill in the conditions to see who is in it.</p> : null}
      <Problems error={key === null ? null : error} onRetry={reload} />
      {key === null || error !== null ? null : data === undefined || isLoading ? (
        <p class="muted">Counting …</p>
      ) : (
        <>
          <p>
            <strong class="num">{plural(data.count, 'user')}</strong>
            {now === null ? '' : difference(data.count - now)}
          </p>
          <Words of={data.words} />
          <Ids of={data} />
        </>
      )}
    </div>
  );
}

function difference(more: number): string {
  if (more === 0) return ', as many as now';
  return `, ${formatCount(Math.abs(more))} ${more > 0 ? 'more' : 'fewer'} than now`;
}

/** Shows each group of conditions with its members indented. */
export function Words({ of }: { readonly of: SegmentDetail['words'] }): VNode {
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

export function Ids({ of: { count, user_ids } }: { readonly of: Omit<SegmentPreview, 'id'> }): VNode {
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
