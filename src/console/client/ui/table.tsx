import type { ComponentChildren, VNode } from 'preact';
import { useRef } from 'preact/hooks';

export interface Column<T> {
  readonly id: string;
  readonly title: string;
  readonly cell: (row: T) => ComponentChildren;
  /** Numbers stand at the end of their column. */
  readonly isNumber?: boolean;
  /** Leaves first where there is little room. */
  readonly isMinor?: boolean;
  /** The server sorts by it: called with the click. */
  readonly onSort?: () => void;
  readonly sorted?: 'ascending' | 'descending';
}

interface TableProps<T> {
  /** What the rows are, for those who do not see the heading. */
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  /** Where a row leads. The first column is the link; arrows, j and k go from row to row, Enter opens. */
  readonly hrefOf?: (row: T) => string;
  /** Without an address: what a row does. */
  readonly onOpen?: (row: T) => void;
  /** Key of the row that is selected, which stands in the address. */
  readonly selected?: string;
  readonly onSelect?: (key: string) => void;
  /** Rows of text and actions: where there is little room each is a block, its first two columns on the first line. */
  readonly isTall?: boolean;
}

const steps: Readonly<Record<string, number>> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 };

/** A table. Rows are moved through by keyboard: each has one thing to focus, that of its first column. */
export function Table<T>(props: TableProps<T>): VNode {
  const { caption, columns, rows, keyOf, hrefOf, onOpen, selected, onSelect, isTall = false } = props;
  const body = useRef<HTMLTableSectionElement>(null);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const targets = [...(body.current?.querySelectorAll<HTMLElement>('[data-row]') ?? [])];
    const at = targets.indexOf(event.target as HTMLElement);
    if (at < 0) return;
    const step = steps[event.key];
    const wanted = event.key === 'Home' ? 0 : event.key === 'End' ? targets.length - 1 : at + (step ?? 0);
    const next = targets[wanted];
    if (next === undefined || wanted === at) return;
    event.preventDefault();
    next.focus();
  };
  const opener = (row: T, children: ComponentChildren): ComponentChildren => {
    const common = {
      'data-row': '',
      class: 'row-open',
      onFocus: () => {
        if (keyOf(row) !== selected) onSelect?.(keyOf(row));
      },
    };
    if (hrefOf !== undefined) {
      return (
        <a {...common} href={hrefOf(row)}>
          {children}
        </a>
      );
    }
    if (onOpen === undefined) return children;
    return (
      <button {...common} type="button" onClick={() => onOpen(row)}>
        {children}
      </button>
    );
  };
  // Rows without anything to focus: then what is scrolled to the side has to be.
  const isPlain = hrefOf === undefined && onOpen === undefined;
  return (
    <div class="table-scroll" {...(isPlain ? { tabIndex: 0, role: 'region', 'aria-label': caption } : {})}>
      <table class={isTall ? 'table table-tall' : 'table'}>
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th
                key={column.id}
                scope="col"
                class={classOf(column)}
                {...(column.sorted === undefined ? {} : { 'aria-sort': column.sorted })}
              >
                {column.onSort === undefined ? (
                  column.title
                ) : (
                  <button type="button" class="sort" onClick={column.onSort}>
                    {column.title}
                    <span aria-hidden="true">{arrowOf(column.sorted)}</span>
                  </button>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body} onKeyDown={onKeyDown}>
          {rows.map((row) => (
            <tr
              key={keyOf(row)}
              class={hrefOf !== undefined || onOpen !== undefined ? 'row-opens' : undefined}
              {...(selected === keyOf(row) ? { 'data-selected': '' } : {})}
            >
              {columns.map((column, at) => (
                <td key={column.id} class={classOf(column)} data-title={column.title}>
                  {at === 0 ? opener(row, column.cell(row)) : column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function classOf<T>({ isNumber = false, isMinor = false }: Column<T>): string | undefined {
  const classes = [isNumber ? 'num' : '', isMinor ? 'minor' : ''].filter((name) => name !== '');
  return classes.length === 0 ? undefined : classes.join(' ');
}

function arrowOf(sorted: Column<unknown>['sorted']): string {
  if (sorted === undefined) return '';
  return sorted === 'ascending' ? ' ↑' : ' ↓';
}
