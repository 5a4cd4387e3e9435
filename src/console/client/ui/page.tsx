import type { ComponentChildren, VNode } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { ApiError } from '../lib/api.ts';
import type { Loaded as LoadedData } from '../lib/data.ts';
import { formatAgo, formatTime, splitHidden, timeZone, visibleText } from '../lib/format.ts';
import { jobHref } from '../lib/jobs.ts';
import { Icon, type IconName } from './drawings.tsx';

/** An instant in the reader's zone, or how long ago it is; the exact one and the zone are shown on hover. */
export function Time({ at, ago = false }: { readonly at: string | null; readonly ago?: boolean }): VNode {
  if (at === null) return <span class="faint">–</span>;
  return (
    <time dateTime={at} title={`${formatTime(at)} ${timeZone} · ${at}`} class="num">
      {ago ? formatAgo(at) : formatTime(at)}
    </time>
  );
}

/** A text from elsewhere, with control characters and marks that reorder text shown by name. */
export function VisibleText({ text }: { readonly text: string }): VNode {
  const pieces = splitHidden(text);
  return (
    <bdi>
      {pieces.map((piece, at) =>
        piece.isHidden ? (
          <span key={at} class="control-character">
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
    </bdi>
  );
}

/** A text from elsewhere, with what was searched for marked, in capitals or not. */
export function Marked({ text, term }: { readonly text: string; readonly term: string }): VNode {
  const searched = new RegExp(`(${term.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')})`, 'iu');
  const parts = (term === '' ? [text] : text.split(searched)).map(visibleText);
  return <bdi>{parts.map((part, at) => (at % 2 === 0 ? part : <mark key={at}>{part}</mark>))}</bdi>;
}

export function JobLink({ id }: { readonly id: string }): VNode {
  return (
    <a class="mono" href={jobHref(id)}>
      {id}
    </a>
  );
}

export type Tone = 'good' | 'busy' | 'waiting' | 'bad' | 'warn' | 'off';

export const toneIcons: Readonly<Record<Tone, IconName>> = {
  good: 'check',
  busy: 'half',
  waiting: 'circle',
  bad: 'cross',
  warn: 'warning',
  off: 'slash',
};

/** Returns the colours of a tone; tokens.css has a pair of each name. */
export function inTone(tone: Tone): { readonly color: string; readonly background: string } {
  return { color: `var(--${tone})`, background: `var(--${tone}-ground)` };
}

/** A state by its word, a shape and a colour, so that no one of them is needed alone. */
export function Badge(props: { readonly tone: Tone; readonly children: ComponentChildren }): VNode {
  const { tone, children } = props;
  return (
    <span class={tone === 'busy' ? 'badge badge-busy' : 'badge'} style={inTone(tone)}>
      <Icon name={toneIcons[tone]} size={12} />
      {children}
    </span>
  );
}

const jobTones: Readonly<Record<string, Tone>> = {
  queued: 'waiting',
  processing: 'busy',
  held: 'warn',
  completed: 'good',
  failed: 'bad',
  cancelled: 'off',
};

export function StatusBadge({ status }: { readonly status: string }): VNode {
  return <Badge tone={jobTones[status] ?? 'waiting'}>{status}</Badge>;
}

/** The error record of the API, where it happened. It stays until its cause is gone. */
export function Problems(props: {
  readonly error: ApiError | null;
  readonly onRetry?: () => void;
}): VNode | null {
  const { error, onRetry } = props;
  if (error === null) return null;
  const codes = new Set(error.problems.map(({ error_code }) => error_code));
  const retry = onRetry && (
    <button type="button" class="button" onClick={onRetry}>
      Try again
    </button>
  );
  return (
    <Notice role="alert" look="bad" action={retry}>
      <ul>
        {error.problems.map(({ error_code, message, details }) => (
          <li key={`${error_code} ${message} ${details}`}>
            {message} <span class="muted">{details}</span>
          </li>
        ))}
      </ul>
      <p class="codes">
        {[...codes].join(', ')}
        {error.requestId === null ? '' : ` · request ${error.requestId}`}
      </p>
    </Notice>
  );
}

interface NoticeProps {
  readonly role?: 'alert' | 'status';
  readonly look?: 'warn' | 'bad' | 'good';
  /** A button beside the text. */
  readonly action?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** Something to know. */
export function Notice({ role, look = 'warn', action, children }: NoticeProps): VNode {
  return (
    <div class={`notice notice-${look}`} style={inTone(look)} role={role}>
      <Icon name={look === 'good' ? 'check' : 'warning'} />
      <div class="break">{children}</div>
      {action}
    </div>
  );
}

/** Says that there is nothing, why, and what to do about it. */
export function Empty(props: { readonly title: string; readonly children?: ComponentChildren }): VNode {
  const { title, children } = props;
  return (
    <div class="stack empty">
      <p class="empty-title">{title}</p>
      {children === undefined ? null : <div>{children}</div>}
    </div>
  );
}

interface EntryProps {
  readonly at: string;
  readonly facts: readonly Fact[];
  readonly children: ComponentChildren;
}

/** An event at a time, in a list of class `events`; unfolded, with its facts. */
export function Entry({ at, facts, children }: EntryProps): VNode {
  return (
    <li>
      <details>
        <summary class="row spread">
          <span class="break">{children}</span>
          <Time at={at} />
        </summary>
        <Facts of={facts} />
      </details>
    </li>
  );
}

interface LoadingProps {
  readonly rows?: number | undefined;
  readonly label?: string | undefined;
}

/** Takes the room of what is being loaded for the first time, so that nothing jumps. */
export function Loading({ rows = 6, label = 'Loading' }: LoadingProps): VNode {
  return (
    <div class="line" role="status">
      <span class="visually-hidden">{label}</span>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} class="loading-row" />
      ))}
    </div>
  );
}

interface LoadedProps<T> extends LoadingProps {
  readonly of: LoadedData<T>;
  /** Stands in place of what is not there (404), which is then no error. */
  readonly none?: VNode;
  readonly children: (data: T) => ComponentChildren;
}

/** Shows what was loaded; before it the room that it will take, and above it the error of the last try. */
export function Loaded<T>({ of, rows, label, none, children }: LoadedProps<T>): VNode {
  const { data, error, reload } = of;
  if (none !== undefined && error?.status === 404) return none;
  return (
    <>
      <Problems error={error} onRetry={reload} />
      {data !== undefined ? children(data) : error === null ? <Loading rows={rows} label={label} /> : null}
    </>
  );
}

interface PageProps {
  readonly title: string;
  /** Beside the title: a state, a count. */
  readonly aside?: ComponentChildren;
  /** Buttons on the right, for what concerns the whole page. */
  readonly actions?: ComponentChildren;
  /** The page that this one belongs to. */
  readonly parent?: { readonly title: string; readonly href: string };
  readonly children: ComponentChildren;
}

/** The first page leaves the focus at the top; every later one moves it to its heading. */
let isFirst = true;

/** The frame of every screen: a heading, which receives the focus, and the content below. */
export function Page({ title, aside, actions, parent, children }: PageProps): VNode {
  const heading = useRef<HTMLHeadingElement>(null);
  const { path } = useLocation();
  useLayoutEffect(() => {
    document.title = `${title} · sluice`;
  }, [title]);
  useLayoutEffect(() => {
    // The page before sees the new path too: it is still there until the code of this one has come.
    if (!isFirst) heading.current?.focus();
    isFirst = false;
  }, [path]);
  return (
    <>
      <header>
        {parent === undefined ? null : (
          <a class="row muted small page-parent" href={parent.href}>
            <Icon name="back" size={12} />
            {parent.title}
          </a>
        )}
        <div class="row page-title">
          <h1 class="break" dir="auto" tabIndex={-1} ref={heading}>
            {title}
          </h1>
          {aside}
          {actions === undefined ? null : <div class="row page-actions">{actions}</div>}
        </div>
      </header>
      {children}
    </>
  );
}

/** The name of something, and what is said of it on the line below. */
export function TwoLines({ children, below }: Record<'children' | 'below', ComponentChildren>): VNode {
  return (
    <span class="two-lines">
      <span class="break">{children}</span>
      {below === null ? null : <span class="faint break">{below}</span>}
    </span>
  );
}

interface SectionProps {
  readonly title: string;
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
  /** The content goes to the edges, as a table does. */
  readonly flush?: boolean;
}

/** A part of a screen with a heading of its own. */
export function Section({ title, aside, children, flush = false }: SectionProps): VNode {
  return (
    <section class={flush ? 'panel panel-flush' : 'panel'}>
      <header class="row spread panel-head">
        <h2>{title}</h2>
        {aside}
      </header>
      <div class={flush ? 'panel-body' : 'panel-body stack'}>{children}</div>
    </section>
  );
}

interface FoldProps extends Pick<SectionProps, 'title' | 'aside' | 'children'> {
  /** It is open at first. */
  readonly isOpen?: boolean;
}

/** A part of a screen that is unfolded by whoever wants to know. */
export function Fold({ title, aside, isOpen = false, children }: FoldProps): VNode {
  const [isOpenFirst] = useState(isOpen);
  return (
    <details class="panel fold" open={isOpenFirst}>
      <summary class="row">
        <h2>{title}</h2>
        {aside}
      </summary>
      <div class="panel-body stack">{children}</div>
    </details>
  );
}

/** A text is a label of ours; names that callers choose are elements. */
export type Fact = readonly [name: string | VNode, value: ComponentChildren];

/** Facts about one thing. A fact without a value is left out. */
export function Facts({ of }: { readonly of: readonly Fact[] }): VNode {
  const known = of.filter(([, value]) => value !== null && value !== undefined);
  return (
    <dl class="stack facts">
      {known.map(([name, value], at) => (
        <div key={at}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
