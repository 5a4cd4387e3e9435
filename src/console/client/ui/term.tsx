import { type Signal, signal } from '@preact/signals';
import { type ComponentChildren, createContext, type VNode } from 'preact';
import { useContext, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { glossary } from '../lib/glossary.ts';

interface TermProps {
  readonly of: string;
  /** What stands before and after the word. */
  readonly before?: string;
  readonly after?: string;
  readonly children: ComponentChildren;
}

/** The room between an explanation and the edge of the page. */
const edge = 8;

/** A word with what the glossary says of it: on hover, with a tap, or with Enter. Escape closes it. */
export function Term({ of, before, after, children }: TermProps): VNode {
  const id = useId();
  const word = useRef<HTMLButtonElement>(null);
  const tip = useRef<HTMLSpanElement>(null);
  const [isOpen, setOpen] = useState(false);
  useLayoutEffect(() => {
    if (!isOpen || tip.current === null || word.current === null) return;
    tip.current.showPopover();
    const { left, bottom } = word.current.getBoundingClientRect();
    const right = document.documentElement.clientWidth - tip.current.offsetWidth - edge;
    tip.current.style.left = `${Math.max(edge, Math.min(left, right)) + scrollX}px`;
    tip.current.style.top = `${bottom + scrollY}px`;
  }, [isOpen]);
  const meaning = glossary[of] ?? '';
  return (
    <span
      // The explanation is in it: the pointer can move onto it, and it stays.
      onPointerEnter={({ pointerType }) => pointerType === 'mouse' && setOpen(true)}
      onPointerLeave={({ pointerType }) => pointerType === 'mouse' && tip.current?.hidePopover()}
    >
      {before}
      <button type="button" class="term" ref={word} aria-describedby={id} onClick={() => setOpen(true)}>
        {children}
      </button>
      {after}
      <span
        id={id}
        class="term-tip"
        ref={tip}
        popover="auto"
        role="tooltip"
        aria-live="polite"
        onToggle={({ newState }) => setOpen(newState === 'open')}
      >
        {/* Not in the page's text until it is asked for. */}
        {isOpen ? `${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}.` : null}
      </span>
    </span>
  );
}

/** The labels of a page, in the order in which they came: the word of the glossary in each, and its id. */
export type Labels = Signal<readonly (readonly [word: string, id: string])[]>;
export const noLabels: Labels['value'] = [];
export const PageLabels = createContext<Labels>(signal(noLabels));

/** Finds a word of the glossary, or its plural. */
const found = new RegExp(
  `\\b(${Object.keys(glossary)
    .map((word) => word.replace(/y$/, '(?:y|ies)'))
    .join('|')})s?\\b`,
  'i',
);
const words = Object.keys(glossary);

/** A text of ours that names something. The first of a page with a word of the glossary explains it. */
export function Label({ text }: { readonly text: string }): VNode {
  const labels = useContext(PageLabels);
  const id = useId();
  const match = found.exec(text);
  const [written = ''] = match ?? [];
  const own = written.toLowerCase().replace(/ies$/, 'y');
  const word = match === null ? undefined : words.find((each) => own.startsWith(each.toLowerCase()));
  useLayoutEffect(() => {
    if (word === undefined) return;
    labels.value = [...labels.value, [word, id]];
    return () => {
      labels.value = labels.value.filter(([, each]) => each !== id);
    };
  }, [word]);
  const [, first] = labels.value.find(([each]) => each === word) ?? [];
  if (match === null || word === undefined || first !== id) return <>{text}</>;
  return (
    <Term of={word} before={text.slice(0, match.index)} after={text.slice(match.index + written.length)}>
      {written}
    </Term>
  );
}
