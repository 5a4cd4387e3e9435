import { serveTasks } from '../sandbox/sandbox.ts';
import { type LoadTasks, loadTasks } from './sandbox-tasks.ts';

/* The program of a sandbox: a separate entry point, without anything that a sandbox does not need. */
serveTasks<LoadTasks>(loadTasks);
