import type { ComponentChildren, VNode } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { type ApiError, outage } from '../lib/api.ts';
import type { Loaded as LoadedData } from '../lib/data.ts';
import { formatAgo, formatTime, splitHidden, timeZone, visibleText } from '../lib/format.ts';
import { jobHref } from '../lib/jobs.ts';
import { Icon, type IconName } from './drawings.tsx';

/**
 * Shows a time in the reader's zone, or relative to now. The tooltip has the exact time and the
 * zone.
 */
export function Time({ at, ago = false }: { readonly at: string | null; readonly ago?: boolean }): VNode {
  if (at === null) return <span class="faint">–</span>;
  return (
    <time dateTime={at} title={`${formatTime(at)} ${timeZone} · ${at}`} class="num">
      {ago ? formatAgo(at) : formatTime(at)}
    </time>
  );
}

/** Text from outside the console. Hidden characters are shown as escapes. */
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

/** Text from outside the console with marked matches. The search ignores case. */
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

export function inTone(tone: Tone): { readonly color: string; readonly background: string } {
  return { color: `var(--${tone})`, background: `var(--${tone}-ground)` };
}

/** Shows a state, which can be recognised by the word, the shape or the colour alone. */
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
  readonly action?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Notice({ role, look = 'warn', action, children }: NoticeProps): VNode {
  return (
    <div class={`notice notice-${look}`} style={inTone(look)} role={role}>
      <Icon name={look === 'good' ? 'check' : 'warning'} />
      <div class="break">{children}</div>
      {action}
    </div>
  );
}

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

/** An event in a list that has the class `events`. When opened, it shows its facts. */
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

/** Placeholder rows, so that the page does not shift. */
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
  /** Element to show if the response has the status 404, which is then not an error. */
  readonly none?: VNode;
  readonly children: (data: T) => ComponentChildren;
}

/** Shows loaded data below the error of the latest attempt. */
export function Loaded<T>({ of, rows, label, none, children }: LoadedProps<T>): VNode {
  const { data, error, reload } = of;
  if (none !== undefined && error?.status === 404) return none;
  return (
    <>
      <Problems error={error} onRetry={reload} />
      {data === undefined && error === null ? <Loading rows={rows} label={label} /> : null}
      {data === undefined ? null : children(data)}
    </>
  );
}

interface PageProps {
  readonly title: string;
  /** Content next to the title, such as a state or a count. */
  readonly aside?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly parent?: { readonly title: string; readonly href: string };
  readonly children: ComponentChildren;
}

/** The first page leaves the focus at the top. Each later page moves the focus to its heading. */
let isFirst = true;

export function Page({ title, aside, actions, parent, children }: PageProps): VNode {
  const heading = useRef<HTMLHeadingElement>(null);
  const { path } = useLocation();
  useLayoutEffect(() => {
    document.title = `${title} · sluice`;
  }, [title]);
  useLayoutEffect(() => {
    // Until the code of a new page has loaded, its path still shows the previous page.
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
  readonly flush?: boolean;
}

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
  readonly isOpen?: boolean;
}

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

/** The console's own names are strings. A name from an API caller is an element. */
export type Fact = readonly [name: string | VNode, value: ComponentChildren];

export function Facts({ of }: { readonly of: readonly Fact[] }): VNode {
  const filled = of.filter(([, value]) => value !== null && value !== undefined);
  return (
    <dl class="stack facts">
      {filled.map(([name, value], at) => (
        <div key={at}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const outages = {
  unreachable: 'The service has been unreachable',
  overloaded: 'The service has been overloaded',
  database: 'The service has been without its database',
} as const;

export function Away(): VNode | null {
  const { cause = null, since = null } = outage.value ?? {};
  if (cause === null) return null;
  return (
    <div class="away">
      <Notice role="alert">
        {outages[cause]} since <Time at={since} />. This page keeps what it shows, and tries again by itself.
      </Notice>
    </div>
  );
}
