/* What an extension module may do without Python seeing it. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

int reach_network(int port)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(port)};
    int made = socket(AF_INET, SOCK_STREAM, 0);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (made < 0)
        return 0;
    int reached = connect(made, (struct sockaddr *)&where, sizeof where) == 0;
    close(made);
    return reached;
}

int reach_local_socket(const char *path)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    int made = socket(AF_UNIX, SOCK_STREAM, 0);
    if (made < 0)
        return 0;
    strncpy(where.sun_path, path, sizeof where.sun_path - 1);
    int reached = connect(made, (struct sockaddr *)&where, sizeof where) == 0;
    close(made);
    return reached;
}

int reach_disk(const char *path)
{
    int made = open(path, O_CREAT | O_WRONLY, 0600);
    if (made < 0)
        return 0;
    close(made);
    return 1;
}

int reach_programs(void)
{
    char *arguments[] = {"true", NULL}, *environment[] = {NULL};
    int status = 1;
    pid_t made = fork();
    if (made == 0) {
        execve("/bin/true", arguments, environment);
        _exit(1);
    }
    if (made < 0)
        return 0;
    waitpid(made, &status, 0);
    return status == 0;
}
