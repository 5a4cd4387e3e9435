import type { ComponentChildren, VNode } from 'preact';
import type { ApiError } from '../lib/api.ts';
import { Icon } from './icons.tsx';

/** The error record of the API, where it happened; it stays until what caused it is gone. Null shows nothing. */
export function Problems({
  error,
  onRetry,
}: {
  readonly error: ApiError | null;
  readonly onRetry?: () => void;
}): VNode | null {
  if (error === null) return null;
  return (
    <div class="problems" role="alert">
      <Icon name="warning" />
      <div>
        <ul>
          {error.problems.map((problem) => (
            <li key={`${problem.error_code} ${problem.message} ${problem.details}`}>
              {problem.message}
              {problem.details === '' ? null : <span class="problem-details"> {problem.details}</span>}
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

/** There is nothing, why, and what to do about it. */
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

/** What is being loaded for the first time: the room that it will take, so that nothing jumps. */
export function Loading({
  rows = 6,
  label = 'Loading',
}: {
  readonly rows?: number;
  readonly label?: string;
}): VNode {
  return (
    <div class="loading" role="status">
      <span class="visually-hidden">{label}</span>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} class="loading-row" />
      ))}
    </div>
  );
}
