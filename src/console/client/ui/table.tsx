import type { ComponentChildren, VNode } from 'preact';
import { useQuery } from '../lib/address.ts';
import type { Page } from '../lib/api.ts';
import type { Loaded as LoadedData } from '../lib/data.ts';
import { formatCount, plural } from '../lib/format.ts';
import { Icon } from './drawings.tsx';
import { Empty, Loaded, Section } from './page.tsx';

/** `num` stands at the end of its column; `minor` is hidden where there is little room. */
export type Column<T> = readonly [
  /** A text is a label of ours; names that callers choose are elements. */
  title: string | VNode,
  cell: (row: T) => ComponentChildren,
  is?: 'num' | 'minor' | 'num minor',
];

interface TableProps<T> {
  /** Names the rows for those who do not see the heading. */
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  /** Returns where a row leads. The first column is the link; arrows, j and k go from row to row, Enter opens. */
  readonly hrefOf?: (row: T) => string;
  /** Keeps the row that has the focus in the address, as `row`. */
  readonly isSelectable?: boolean;
  /** Rows of text and actions: where there is little room each is a block, its first two columns on the first line. */
  readonly isTall?: boolean;
  /** Stands in place of a table without rows; a text is a title. */
  readonly empty?: string | VNode;
}

/** A table whose rows are moved through by keyboard (`Keys`): each has one thing to focus, in its first column. */
export function Table<T>(props: TableProps<T>): VNode {
  const { caption, columns, rows, keyOf, hrefOf, empty } = props;
  const { isSelectable = false, isTall = false } = props;
  const query = useQuery();
  if (rows.length === 0 && empty !== undefined)
    return typeof empty === 'string' ? <Empty title={empty} /> : empty;
  const selected = isSelectable ? query.get('row') : '';
  const opener = (row: T, children: ComponentChildren): ComponentChildren => {
    if (hrefOf === undefined) return children;
    const onFocus = (): void => {
      if (isSelectable && keyOf(row) !== selected) query.set({ row: keyOf(row) });
    };
    return (
      <a data-row="" class="row-open" href={hrefOf(row)} onFocus={onFocus}>
        {children}
      </a>
    );
  };
  return (
    // Rows without anything to focus: then what is scrolled to the side has to be.
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
        <tbody>
          {rows.map((row) => (
            <tr
              key={keyOf(row)}
              class={hrefOf && 'row-opens'}
              data-selected={selected === keyOf(row) ? '' : undefined}
            >
              {columns.map(([title, cell, is], at) => (
                <td key={at} class={is} data-title={typeof title === 'string' ? title : undefined}>
                  {at === 0 ? opener(row, cell(row)) : cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface TableSectionProps<T> extends Omit<TableProps<T>, 'rows' | 'isSelectable'> {
  readonly title: string;
  readonly aside?: ComponentChildren;
  /** The rows, or what loads them. */
  readonly of: readonly T[] | LoadedData<readonly T[]>;
  /** The room to take while they are loaded. */
  readonly room?: number;
  /** Stands below the table. */
  readonly children?: ComponentChildren;
}

/** A table as a part of a screen. */
export function TableSection<T>(props: TableSectionProps<T>): VNode {
  const { title, aside, of, room, children, ...table } = props;
  return (
    <Section title={title} aside={aside} flush>
      {'data' in of ? (
        <Loaded of={of} rows={room}>
          {(rows) => <Table {...table} rows={rows} />}
        </Loaded>
      ) : (
        <Table {...table} rows={of} />
      )}
      {children}
    </Section>
  );
}

interface PagerProps {
  readonly page: Page<unknown>;
  readonly one: string;
  readonly many?: string | undefined;
}

/** Below a list whose cursor stands in the address: how many there are, and the way on. Lists are read forwards. */
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

interface ListProps<T> extends Omit<TableProps<T>, 'rows' | 'isSelectable' | 'isTall'> {
  readonly of: LoadedData<Page<T>>;
  /** The rows, if they are not the items of the page. */
  readonly rows?: readonly T[];
  readonly one: string;
  readonly many?: string;
}

/** A table page by page. The page and the row that has the focus stand in the address. */
export function List<T>({ of, rows, one, many, ...table }: ListProps<T>): VNode {
  return (
    <div class="panel" aria-busy={of.isLoading}>
      <Loaded of={of} rows={10}>
        {(page) => (
          <>
            <Table {...table} rows={rows ?? page.items} isSelectable />
            {page.items.length === 0 && page.next === null ? null : (
              <Pager page={page} one={one} many={many} />
            )}
          </>
        )}
      </Loaded>
    </div>
  );
}

/** A link that takes the filters out of the address, and the page and the row that they led to; nothing if none is given. */
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
