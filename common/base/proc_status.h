/* Numbers that the kernel keeps of this process. */
#ifndef COMMON_BASE_PROC_STATUS_H
#define COMMON_BASE_PROC_STATUS_H

/* Opens the numbers of this process, before the sandbox is entered; -1 on failure. */
int proc_status_open(void);

/* Reads one number of /proc/PID/status, such as "Threads:"; -1 if it is not there. */
long proc_status_number(int file, const char *name);

#endif
