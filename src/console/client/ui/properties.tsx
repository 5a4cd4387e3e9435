import type { VNode } from 'preact';
import { formatCount, shorten, valueText, visibleText } from '../lib/format.ts';
import { type Fact, VisibleText } from './page.tsx';

/** A string is shown unchanged, any other value as JSON. */
export function Value({ of }: { readonly of: unknown }): VNode {
  if (of === undefined || of === null) return <span class="faint">–</span>;
  if (of === '') return <span class="faint">empty</span>;
  return <VisibleText text={valueText(of)} />;
}

const longText = 400;

/** A long value is collapsed. */
export function FullValue({ of }: { readonly of: unknown }): VNode {
  const text = visibleText(valueText(of));
  if (text.length <= longText)
    return (
      <span class="break">
        <Value of={of} />
      </span>
    );
  return (
    <details class="break">
      <summary>
        <bdi>{visibleText(shorten(valueText(of), longText))}</bdi>
      </summary>
      <p dir="auto">{text}</p>
    </details>
  );
}

export function propertyFacts(of: object): readonly Fact[] {
  return Object.entries(of).map(([name, value]) => [
    <bdi key={name}>{visibleText(name)}</bdi>,
    <FullValue key={name} of={value} />,
  ]);
}

interface PropertySummaryProps {
  readonly of: object;
  readonly without?: readonly string[];
}

const mostShown = 4;
const mostCharacters = 28;

export function PropertySummary({ of, without = [] }: PropertySummaryProps): VNode {
  const all = Object.entries(of).filter(([name]) => !without.includes(name));
  const rest = all.length - mostShown;
  const cut = (text: string): string => visibleText(shorten(text, mostCharacters));
  if (all.length === 0) return <span class="faint">none</span>;
  return (
    <span class="row glance">
      {all.slice(0, mostShown).map(([name, value]) => (
        <span key={name}>
          <bdi class="faint">{cut(name)}</bdi> <bdi>{cut(valueText(value))}</bdi>
        </span>
      ))}
      {rest > 0 ? <span class="faint">and {formatCount(rest)} more</span> : null}
    </span>
  );
}
