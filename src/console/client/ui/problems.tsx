import type { ComponentChildren, VNode } from 'preact';
import type { ApiError } from '../lib/api.ts';
import { live } from '../lib/live.ts';
import type { Loaded as LoadedData } from '../lib/use-data.ts';
import { Icon } from './icons.tsx';
import { Time } from './text.tsx';

interface ProblemsProps {
  readonly error: ApiError | null;
  readonly onRetry?: () => void;
}

/** The error record of the API, where it happened. It stays until its cause is gone. */
export function Problems({ error, onRetry }: ProblemsProps): VNode | null {
  if (error === null) return null;
  return (
    <div class="problems" role="alert">
      <Icon name="warning" />
      <div>
        <ul>
          {error.problems.map(({ error_code, message, details }) => (
            <li key={`${error_code} ${message} ${details}`}>
              {message}
              {details === '' ? null : <span class="problem-details"> {details}</span>}
            </li>
          ))}
        </ul>
        <p class="problem-codes">
          {[...new Set(error.problems.map(({ error_code }) => error_code))].join(', ')}
          {error.requestId === null ? '' : ` · request ${error.requestId}`}
        </p>
      </div>
      {onRetry === undefined ? null : (
        <button type="button" class="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Something to know that is no error of the page. */
export function Notice({
  role,
  children,
}: {
  readonly role?: 'alert';
  readonly children: ComponentChildren;
}): VNode {
  return (
    <div class="notice" role={role}>
      <Icon name="warning" />
      <div class="break">{children}</div>
    </div>
  );
}

/** Says that there is nothing, why, and what to do about it. */
export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}): VNode {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children === undefined ? null : <div class="empty-text">{children}</div>}
    </div>
  );
}

interface LoadingProps {
  readonly rows?: number | undefined;
  readonly label?: string | undefined;
}

/** Takes the room of what is being loaded for the first time, so that nothing jumps. */
export function Loading({ rows = 6, label = 'Loading' }: LoadingProps): VNode {
  return (
    <div class="loading" role="status">
      <span class="visually-hidden">{label}</span>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} class="loading-row" />
      ))}
    </div>
  );
}

interface LoadedProps<T> extends LoadingProps {
  readonly of: LoadedData<T>;
  readonly children: (data: T) => ComponentChildren;
}

/** Shows what was loaded; before it the room that it will take, and above it the error of the last try. */
export function Loaded<T>({ of: { data, error, reload }, rows, label, children }: LoadedProps<T>): VNode {
  return (
    <>
      <Problems error={error} onRetry={reload} />
      {data !== undefined ? children(data) : error === null ? <Loading rows={rows} label={label} /> : null}
    </>
  );
}

/** Says since when the server has not been able to read the ledger, if so. */
export function StaleNotice(): VNode | null {
  const { staleSince } = live.value;
  if (staleSince === null) return null;
  return (
    <Notice>
      The server has not been able to read the ledger since <Time at={staleSince} />: what is shown is older.
    </Notice>
  );
}
