import type { ComponentChildren, VNode } from 'preact';
import { useQuery } from '../lib/address.ts';
import type { Page } from '../lib/api.ts';
import type { Loaded as LoadedData } from '../lib/data.ts';
import { formatCount, plural } from '../lib/format.ts';
import { Icon } from './drawings.tsx';
import { Empty, Loaded, Section } from './page.tsx';

/** `num` aligns the cells to the end. `minor` hides the column on narrow screens. */
export type Column<T> = readonly [
  /** The console's own titles are strings. A title from an API caller is an element. */
  title: string | VNode,
  cell: (row: T) => ComponentChildren,
  is?: 'num' | 'minor' | 'num minor',
];

interface TableProps<T> {
  /** Name of the table for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  /** Returns the key of a row. Default: the row's position. */
  readonly keyOf?: (row: T, at: number) => string;
  /** Link of a row's first cell. The arrow keys, j, k and Enter select and open rows. */
  readonly hrefOf?: (row: T) => string;
  /** The page's address stores the focused row, as `row`. */
  readonly isSelectable?: boolean;
  /** On narrow screens, each row is a block whose first line has the first two columns. */
  readonly isTall?: boolean;
  /** Text or element that replaces a table without rows. A string is shown as a title. */
  readonly empty?: string | VNode;
}

/** A table that can be used by keyboard (`Keys`). */
export function Table<T>(props: TableProps<T>): VNode {
  const { caption, columns, rows, keyOf = (_, at) => String(at), hrefOf, empty } = props;
  const { isSelectable = false, isTall = false } = props;
  const query = useQuery();
  if (rows.length === 0 && empty !== undefined)
    return typeof empty === 'string' ? <Empty title={empty} /> : empty;
  const selected = isSelectable ? query.get('row') : null;
  const body = rows.map((row, place) => {
    const key = keyOf(row, place);
    const select = isSelectable && key !== selected ? () => query.set({ row: key }) : undefined;
    const cells = columns.map(([title, cell, is], at) => (
      <td key={at} class={is} data-title={typeof title === 'string' ? title : undefined}>
        {at > 0 || hrefOf === undefined ? (
          cell(row)
        ) : (
          <a data-row="" class="row-open" href={hrefOf(row)} onFocus={select}>
            {cell(row)}
          </a>
        )}
      </td>
    ));
    return (
      <tr key={key} class={hrefOf && 'row-opens'} data-selected={selected === key ? '' : undefined}>
        {cells}
      </tr>
    );
  });
  return (
    // Without links, the table itself is focusable, so that the keyboard scrolls it.
    <div class="table-scroll" {...(hrefOf ? {} : { tabIndex: 0, role: 'region', 'aria-label': caption })}>
      <table class={isTall ? 'table table-tall' : 'table'}>
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(([title, , is], at) => (
              <th key={at} scope="col" class={is}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{body}</tbody>
      </table>
    </div>
  );
}

interface ListProps<T> extends Omit<TableProps<T>, 'rows' | 'isSelectable' | 'caption'> {
  /** Rows, or loaded data with all rows or one page of them. */
  readonly of: readonly T[] | LoadedData<readonly T[] | Page<T>>;
  /** A list without a heading is the screen's main list, whose selected row is in the address. */
  readonly title?: string;
  readonly aside?: ComponentChildren;
  /** Name of the table for screen readers. Default: `title`. */
  readonly caption?: string;
  /** Rows for which space is reserved while loading. */
  readonly room?: number;
  readonly one?: string;
  readonly many?: string;
  readonly children?: ComponentChildren;
}

export function List<T>(props: ListProps<T>): VNode {
  const { of, title, aside, caption = title ?? '', one = 'row', many, children, ...table } = props;
  const isMain = title === undefined;
  const { room = isMain ? 10 : 6 } = props;
  const shown = (data: readonly T[] | Page<T>): VNode => {
    const page = 'items' in data ? data : { items: data, total: null, next: null };
    const isPaged = page === data && (page.items.length > 0 || page.next !== null);
    return (
      <>
        <Table {...table} caption={caption} rows={page.items} isSelectable={isMain} />
        {isPaged ? <Pager page={page} one={one} many={many} /> : null}
      </>
    );
  };
  const content = (
    <>
      {'data' in of ? (
        <Loaded of={of} rows={room}>
          {shown}
        </Loaded>
      ) : (
        shown(of)
      )}
      {children}
    </>
  );
  return isMain ? (
    <div class="panel" aria-busy={'data' in of && of.isLoading}>
      {content}
    </div>
  ) : (
    <Section title={title} aside={aside} flush>
      {content}
    </Section>
  );
}

interface PagerProps {
  readonly page: Page<unknown>;
  readonly one: string;
  readonly many?: string | undefined;
}

export function Pager({ page: { items, total, next }, one, many = `${one}s` }: PagerProps): VNode {
  const query = useQuery();
  const isFirst = query.get('cursor') === '';
  const isWhole = total === null || (isFirst && next === null);
  return (
    <nav class="row line pager" aria-label={`Pages of ${many}`}>
      <span class="push faint num">
        {isWhole
          ? plural(items.length, one, many)
          : `${formatCount(items.length)} of ${plural(total, one, many)}`}
      </span>
      {isFirst ? null : (
        <a class="button" href={query.href({ cursor: undefined, row: undefined })}>
          First page
        </a>
      )}
      {next === null ? null : (
        <a class="button" href={query.href({ cursor: next, row: undefined })}>
          Next page
          <Icon name="next" size={12} />
        </a>
      )}
    </nav>
  );
}

/**
 * Link that removes the filters, the page and the selected row from the address. `null` if no
 * filter is set.
 */
export function ClearFilters({ names }: { readonly names: readonly string[] }): VNode | null {
  const query = useQuery();
  if (Object.keys(query.given(names)).length === 0) return null;
  const none = Object.fromEntries([...names, 'cursor', 'row'].map((name) => [name, undefined]));
  return (
    <a class="button button-quiet" href={query.href(none)}>
      Clear
    </a>
  );
}
