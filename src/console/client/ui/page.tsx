import type { ComponentChildren, VNode } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { Icon } from './icons.tsx';

interface PageProps {
  readonly title: string;
  /** Beside the title: a state, a count. */
  readonly aside?: ComponentChildren;
  /** What can be done with all of it: buttons, on the right. */
  readonly actions?: ComponentChildren;
  /** Where it belongs to. */
  readonly parent?: { readonly title: string; readonly href: string };
  readonly children: ComponentChildren;
}

/** Whoever comes from another page is taken to the heading of this one; whoever opens the console is left at its top. */
let isFirst = true;

/** What every screen is: a heading, which is given the focus when somebody comes here, and what stands below. */
export function Page({ title, aside, actions, parent, children }: PageProps): VNode {
  const heading = useRef<HTMLHeadingElement>(null);
  const { path } = useLocation();
  useLayoutEffect(() => {
    document.title = `${title} · sluice`;
  }, [title]);
  useLayoutEffect(() => {
    // The page before is still there, and sees the new path too, until the code of this one has come.
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

/** A part of a screen with a heading of its own. */
export function Section({
  title,
  aside,
  children,
  flush = false,
  id,
}: {
  /** Links lead here. */
  readonly id?: string;
  readonly title: string;
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
  /** What is in it goes to its edges, as a table does. */
  readonly flush?: boolean;
}): VNode {
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

/** Names and values: facts about one thing. A value that is null is left out. */
export function Facts({ of }: { readonly of: readonly (readonly [string, ComponentChildren])[] }): VNode {
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
