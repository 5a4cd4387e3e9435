import type { VNode } from 'preact';
import type { Page } from '../lib/api.ts';
import { formatCount } from '../lib/format.ts';
import { useQuery } from '../lib/use-query.ts';
import { Icon } from './icons.tsx';

/** Below a list whose cursor stands in the address: how many there are, and the way on. Lists are read forwards. */
export function Pager<T>({ page, noun }: { readonly page: Page<T>; readonly noun: string }): VNode {
  const query = useQuery();
  const isFirst = query.get('cursor') === '';
  const shown = formatCount(page.items.length);
  const text =
    page.total === null || (isFirst && page.next === null)
      ? `${shown} ${noun}`
      : `${shown} of ${formatCount(page.total)} ${noun}`;
  return (
    <nav class="pager" aria-label={`Pages of ${noun}`}>
      <span class="pager-count faint num">{text}</span>
      {isFirst ? null : (
        <a class="button" href={query.href({ cursor: undefined, row: undefined })}>
          First page
        </a>
      )}
      {page.next === null ? null : (
        <a class="button" href={query.href({ cursor: page.next, row: undefined })}>
          Next page
          <Icon name="next" size={12} />
        </a>
      )}
    </nav>
  );
}
