import type { ComponentChildren, VNode } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { Icon } from './icons.tsx';

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
      <header class="page-head">
        {parent === undefined ? null : (
          <a class="page-parent" href={parent.href}>
            <Icon name="back" size={12} />
            {parent.title}
          </a>
        )}
        <div class="page-title">
          <h1 tabIndex={-1} ref={heading}>
            {title}
          </h1>
          {aside}
          {actions === undefined ? null : <div class="page-actions">{actions}</div>}
        </div>
      </header>
      {children}
    </>
  );
}

interface SectionProps {
  /** Links lead here. */
  readonly id?: string;
  readonly title: string;
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
  /** The content goes to the edges, as a table does. */
  readonly flush?: boolean;
}

/** A part of a screen with a heading of its own. */
export function Section({ title, aside, children, flush = false, id }: SectionProps): VNode {
  return (
    <section id={id} class={flush ? 'panel panel-flush' : 'panel'}>
      <header class="panel-head">
        <h2>{title}</h2>
        {aside}
      </header>
      <div class="panel-body">{children}</div>
    </section>
  );
}

export type Fact = readonly [name: string, value: ComponentChildren];

/** Facts about one thing. A fact without a value is left out. */
export function Facts({ of }: { readonly of: readonly Fact[] }): VNode {
  return (
    <dl class="facts">
      {of
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
